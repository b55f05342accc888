"""What each kind of round does: weigh, decide, remove, on whatever engine has the contributions."""

from functools import partial
from typing import Any, cast

from dp_sips.engines.base import Contributions, Turns
from dp_sips.privacy.adaptive import WIDE_BITS
from dp_sips.privacy.decide import (
    Decide,
    DecideOnEvidence,
    decide,
    decide_and_note,
    decide_by_rule,
    decide_on_evidence,
    decide_with_laplace,
)
from dp_sips.privacy.noise import Scrambler
from dp_sips.privacy.policy import Liking
from dp_sips.rounds import (
    AdaptiveRound,
    AnyRound,
    EvidenceRound,
    FoldRound,
    LaplaceRound,
    RuleRound,
)


def run_round(
    contributions: Contributions, step: AnyRound, noise: Scrambler, liking: Liking | None = None
) -> None:
    """Weigh the items, get verdicts on them, and take them out of the users' sets."""
    weights = _weigh(contributions, step, liking)
    on_evidence = _judge_of_evidence(step, noise)
    if on_evidence is None:
        contributions.remove(contributions.decide(weights, _judge(step, noise)))
        return
    released, hopeless = contributions.decide_on_evidence(weights, on_evidence)
    contributions.remove(released)
    contributions.drop(hopeless)


def _weigh(contributions: Contributions, step: AnyRound, liking: Liking | None) -> Any:
    if isinstance(step, FoldRound | LaplaceRound):
        return cast("Turns", contributions).fold(step.policy, step.max_items, liking)
    if isinstance(step, AdaptiveRound):
        initial = contributions.spread(step.spread.first, step.max_items)
        return contributions.spread(step.spread.second, step.max_items, initial, step.spread.signal)
    return contributions.weigh(step.max_items, step.step_bits)


def _judge(step: AnyRound, noise: Scrambler) -> Decide:
    if isinstance(step, RuleRound):
        return partial(decide_by_rule, rule=step.rule, scrambler=noise)
    level: dict[str, Any] = {"threshold": step.threshold, "scrambler": noise}
    if isinstance(step, LaplaceRound):
        unit_bits = step.policy.unit_bits
        return partial(decide_with_laplace, scale=step.scale, unit_bits=unit_bits, **level)
    if isinstance(step, FoldRound):
        level["unit_bits"] = step.policy.unit_bits
    elif isinstance(step, AdaptiveRound):
        level["unit_bits"] = WIDE_BITS
    return partial(decide, sigma=step.sigma, **level)


def _judge_of_evidence(step: AnyRound, noise: Scrambler) -> DecideOnEvidence | None:
    """Return the judge of rounds that drop items and keep evidence; of the others, none."""
    if isinstance(step, EvidenceRound):
        return partial(
            decide_on_evidence,
            share=step.share,
            spent=step.spent,
            sigma=step.sigma,
            threshold=step.threshold,
            drop=step.drop,
            scrambler=noise,
        )
    if isinstance(step, AdaptiveRound) and step.drop is not None:
        return partial(
            decide_and_note,
            sigma=step.sigma,
            threshold=step.threshold,
            drop=step.drop,
            scrambler=noise,
            unit_bits=WIDE_BITS,
        )
    return None

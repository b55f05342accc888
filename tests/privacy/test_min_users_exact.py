"""`min_users` on small universes, without sampling, as test_exact.py does it.

Every history of verdicts has its probability; weights, sets and removals are the reference
engine's. Broken variants are caught: one that subtracts the smallest contributions instead of the
largest, and one that asks for enough users without subtracting anything.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.privacy.histories import Sets, crowd, worst_delta

from dp_sips import Cumulative, Matching, Single, Sips, SipsRule, WeightedGaussian, plan
from dp_sips.engines import reference
from dp_sips.engines.reference import ReferenceContributions
from dp_sips.mechanisms.claims import CLAIMS
from dp_sips.mechanisms.evidence import STEP_BITS, joint_bound
from dp_sips.privacy.budget import gaussian_delta
from dp_sips.privacy.weights import UNIT

EPSILONS = (0.1, 0.3, 1.0, 2.0)
ROUNDING = 1e-12
ITEMS = 3


def chances(sets: Sets, step: Any) -> dict[Any, float]:
    """Return the chance of each item in a round."""
    loaded = ReferenceContributions(sets, [], {}, pa.schema([]))
    if hasattr(step, "edges"):
        weights, bits = loaded.weigh_by_claim(STEP_BITS, step.min_users), STEP_BITS
    else:
        step_bits = step.coin.step_bits if hasattr(step, "coin") else 30
        weights, bits = loaded.weigh(step.max_items, step_bits, min_users=step.min_users), 30
    return {item: _chance(step, weight, bits) for item, weight in weights.items()}


def _chance(step: Any, weight: int, bits: int) -> float:
    if not weight:
        return 0.0
    if hasattr(step, "coin"):
        return float(step.coin.odds(np.array([weight], dtype=np.uint64))[0][0])
    needed = step.threshold - weight / 2**bits
    if hasattr(step, "edges"):  # noise is rounded to the lattice
        needed = math.ceil(needed * 2**bits - 1e-6) / 2**bits - 2.0 ** -(bits + 1)
    return float(ndtr(-needed / step.sigma))


worst = partial(worst_delta, chances=chances)


MECHANISMS: dict[str, Callable[[int], Any]] = {
    "weighted-gaussian": lambda m: WeightedGaussian(min_users=m),
    "sips": lambda m: Sips(rounds=2, min_users=m),
    "sips-rule": lambda m: SipsRule(rounds=2, min_users=m),
    "one round of evidence": lambda m: Cumulative(rounds=1, min_users=m),
}
sizes = st.lists(st.integers(0, 5), min_size=5, max_size=5)
KINDS = ((0,), (0, 1), (1,), (0, 1, 2), (2,))


def made(
    name: str, m: int, epsilon: float = 1.0, delta: float = 0.01, max_items: int = ITEMS
) -> Any:
    return plan(MECHANISMS[name](m), epsilon=epsilon, delta=delta, max_items=max_items)


class TestPromise:
    @pytest.mark.parametrize("name", MECHANISMS)
    @settings(max_examples=25, deadline=None)
    @given(m=st.integers(1, 5), sizes=sizes)
    def test_every_epsilon(self, name: str, m: int, sizes: list[int]) -> None:
        held, sets = made(name, m), crowd(*zip(KINDS, sizes, strict=True), ((0,), 1))
        for epsilon in EPSILONS:
            assert worst(sets, held.rounds, epsilon) <= held.guarantee.delta(epsilon=epsilon) + (
                ROUNDING
            )

    @pytest.mark.parametrize("m", [1, 2, 7])
    def test_one_item_each_is_as_good_as_can_be(self, m: int) -> None:
        held = plan(Single(min_users=m), epsilon=0.7, delta=0.01)
        worsts = [worst(crowd(((0,), n)), held.rounds, 0.7) for n in range(1, m + 12)]
        assert max(worsts) <= 0.01 + ROUNDING
        assert worsts[m - 1] == pytest.approx(0.01, rel=1e-6)  # from nothing to δ, at m users
        assert not any(worsts[: m - 1])

    def test_votes_less_m_minus_1_have_coins_that_are_private(self) -> None:
        step = plan(Matching(min_users=4), epsilon=0.7, delta=0.01).rounds[0]
        votes = np.arange(step.seats + step.spare + 2, dtype=np.uint64) * np.uint64(UNIT)
        yes = step.coin.odds(votes)[0]
        assert not yes[:4].any()
        assert yes[4] > 0
        for p, q in ((yes[1:], yes[:-1]), (1 - yes[:-1], 1 - yes[1:])):
            assert (p <= math.exp(0.7) * q + 0.01 + ROUNDING).all()


def _without_smallest(given_: list[int], m: int) -> int:
    return sum(sorted(given_)[m - 1 :])


def _if_enough(given_: list[int], m: int) -> int:
    return sum(given_) if len(given_) >= m else 0


MANY = tuple(range(6))
BROKEN = {
    # One item that m users hold, all of whose weight counts at once.
    "no subtraction": (_if_enough, crowd(((0,), 8))),
    # A user with many items, each of them held by m − 1 others who give more to it.
    "the smallest subtracted": (
        _without_smallest,
        crowd((MANY, 1), *(((item,), 7) for item in MANY)),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("variant", BROKEN)
def test_broken_variants_are_caught(
    name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sets = BROKEN[variant]
    held = made(name, 8, epsilon=2.0, delta=1e-4, max_items=len(MANY))
    assert worst(sets, held.rounds, 2.0) <= 1e-4 + ROUNDING
    monkeypatch.setattr(reference, "reduced", broken)
    assert worst(sets, held.rounds, 2.0) > 1.2e-4


class TestEvidence:
    """Given the same history of noisy weights, one user moves the next ones by a norm of 1."""

    @staticmethod
    def weights(sets: Sets, script: Any, m: int, *, broken: bool) -> list[dict[Any, int]]:
        """Follow rounds in which a script, not noise, says what becomes of the claims."""
        blocks = {(n,): np.array([n, 0], dtype=np.uint64) for n in range(ITEMS)}
        loaded = ReferenceContributions([list(s) for s in sets], [], blocks, pa.schema([]))  # type: ignore[arg-type]
        found = []
        for claims_of in script:

            def judge(names: Any, sums: Any, evidence: Any, claims_of: Any = claims_of) -> Any:
                claims = np.array([CLAIMS[claims_of[int(n)]] for n in names[:, 0]], dtype=np.uint8)
                claims = claims * (sums > 0) if broken else claims
                return evidence, np.zeros(len(sums), dtype=bool), claims.astype(np.uint8)

            found.append(loaded.weigh_by_claim(STEP_BITS, m))
            loaded.decide_on_evidence(found[-1], judge)
        return found

    def moved(self, sets: Sets, script: Any, m: int, *, broken: bool = False) -> float:
        """Return the largest norm by which the first user moves a round."""
        one = self.weights(sets, script, m, broken=broken)
        other = self.weights(sets[1:], script, m, broken=broken)
        norms = [
            sum((a.get(item, 0) - b.get(item, 0)) ** 2 for item in a | b)
            for a, b in zip(one, other, strict=True)
        ]
        return math.sqrt(max(norms)) / 2**STEP_BITS

    scripts = st.lists(
        st.lists(st.integers(0, 4), min_size=ITEMS, max_size=ITEMS), min_size=4, max_size=4
    )

    @settings(max_examples=150, deadline=None)
    @given(sizes=sizes, script=scripts, m=st.integers(1, 6))
    def test_a_user_moves_a_norm_of_one(self, sizes: list[int], script: Any, m: int) -> None:
        for own in KINDS:
            sets = crowd((own, 1), *zip(KINDS, sizes, strict=True))
            assert self.moved(sets, script, m) <= 1

    def test_to_drop_what_has_no_weight_is_caught(self) -> None:
        sets, script = crowd(((0,), 1), ((0, 1), 9), ((1,), 9)), [[4] * ITEMS] * 2
        assert self.moved(sets, script, 10) <= 1
        assert self.moved(sets, script, 10, broken=True) > 2

    def test_the_bound_has_the_whole_norm(self) -> None:
        held = plan(Cumulative(min_users=2), epsilon=1.0, delta=1e-6)
        guarantee: Any = held.guarantee
        thresholds = np.array(guarantee.thresholds)
        alone = joint_bound(guarantee.schedule, 250).threshold_delta(guarantee.noise, thresholds)
        noise = gaussian_delta(1.0, math.sqrt(2 * guarantee.noise))
        assert guarantee.exact_delta(1.0, "gaussian") == pytest.approx(alone + noise, rel=1e-6)
        assert held.guarantee.delta(epsilon=1.0) <= 1e-6
        assert guarantee.exact_delta(1.0, "zcdp") == guarantee.exact_delta(1.0, "gaussian")

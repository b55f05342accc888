"""A plan in plain words."""

from dp_sips.errors import UsageError
from dp_sips.plan import Plan
from dp_sips.privacy.policy import Favourite
from dp_sips.privacy.rule import ReleaseRule
from dp_sips.privacy.single import SingleRule
from dp_sips.rounds import AdaptiveRound, EvidenceRound, FoldRound, LaplaceRound, RuleRound

_SIZES = (1, 10, 100)


def explain(plan: Plan) -> str:
    """Say what a plan does, what it guarantees, and how popular an item must be."""
    return "\n\n".join((_promise(plan), _rounds(plan), _chances(plan)))


def _promise(plan: Plan) -> str:
    asked = ", ".join(f"{name} = {value:g}" for name, value in plan.asked.items())
    spent = plan.guarantee
    lines = [
        f"{plan.mechanism.name} with {asked}, at most {plan.max_items} items of each user.",
        "Whoever sees the released items can hardly tell whether any one user, with all",
        "of its items, was in the data. The release is",
        f"  {spent}",
    ]
    if "epsilon" in plan.asked:
        lines.append(
            f"  ({plan.asked['epsilon']:g}, {plan.asked['delta']:g})-differentially private"
        )
    return "\n".join(lines)


def _rounds(plan: Plan) -> str:
    if isinstance(plan.rounds[0], FoldRound | LaplaceRound):
        return _turns(plan.rounds[0])
    rules = [r.rule for r in plan.rounds if isinstance(r, RuleRound)]
    if rules and isinstance(rules[0], SingleRule):
        return (
            "One item of each user counts. An item is released with a probability that\n"
            "depends on the number of its users alone, the highest that the promise\n"
            f"allows: one half from {rules[0].median:.0f} users on."
        )
    if rules:
        return "\n".join(
            (
                "A user with k items gives 1/√k to each. In each round an item is released with a",
                "probability that depends on its weight alone; then it leaves the sets.",
                f"{'round':>5}  {'divergence':>10}  {'delta':>10}  {'half at weight':>14}",
                *(
                    f"{i:>5}  {rule.e:>10.4g}  {rule.delta:>10.3g}  {rule.median:>14.2f}"
                    for i, rule in enumerate(rules, start=1)
                    if isinstance(rule, ReleaseRule)
                ),
            )
        )
    head = f"{'round':>5}  {'rho':>10}  {'delta':>10}  {'noise σ':>9}  {'threshold':>9}"
    rows = [
        f"{row['round']:>5}  {row['rho']:>10.4g}  {row['delta']:>10.3g}  "
        f"{row['sigma']:>9.4f}  {row['threshold']:>9.4f}"
        for row in plan.table()
    ]
    words = {EvidenceRound: _EVIDENCE, AdaptiveRound: _ADAPTIVE}.get(type(plan.rounds[0]), _PLAIN)
    return "\n".join((words, head, *rows))


_PLAIN = """\
A user with k items gives 1/√k to each. An item is released in the first round
in which its weight plus noise reaches the threshold; then it leaves the sets."""

_EVIDENCE = """\
A user with k items gives 1/√k to each. Noisy weights of all rounds add up to
evidence. An item is released in the first round in which its evidence reaches
the threshold, and given up where it is hopeless; then it leaves the sets."""

_ADAPTIVE = """\
A user with k items gives about 1/√k to each, and moves what popular items do not need to
its other items. An item is released in the first round in which its weight plus noise
reaches the threshold; a first of two rounds tells the second which items need weight."""


def _turns(step: FoldRound | LaplaceRound) -> str:
    full = step.policy.target / 2**step.policy.unit_bits
    how = (
        "backs, with 1,\nits favourite among the items that are not full"
        if isinstance(step.policy, Favourite)
        else "pays its items\nin proportion to what they lack, 1 in all"
    )
    noise = (
        f"Gaussian noise of σ = {step.sigma:.4f}"
        if isinstance(step, FoldRound)
        else f"Laplace noise of scale {step.scale:.4f}"
    )
    return (
        f"Users take turns in a random order. Each {how};\n"
        f"an item is full at {full:.4f}. It is released if its weight, with\n"
        f"{noise}, reaches the threshold, {step.threshold:.4f}."
    )


def _chances(plan: Plan) -> str:
    sizes = [m for m in _SIZES if m <= plan.max_items]
    if plan.max_items not in sizes and plan.max_items < _SIZES[-1]:
        sizes.append(plan.max_items)
    return "\n".join(
        f"With these settings an item needs about {_needed(plan, 0.5, m)} users "
        f"(each holding {m} item{'s' * (m > 1)})\n"
        f"for a 50 % chance, {_needed(plan, 0.95, m)} for 95 %."
        for m in sizes
    )


def _needed(plan: Plan, chance: float, items: int) -> str:
    try:
        return f"{plan.users_needed(chance, items):,}"
    except UsageError:
        return "more than 2³⁴"

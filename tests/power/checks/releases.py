"""The release itself: its exact distribution on neighbours, beside the promise."""

from collections.abc import Callable, Sequence

from dp_sips import Mad2R, MemoryEngine, Plan, plan
from dp_sips.auditing.divergence import true_delta
from dp_sips.auditing.enumeration import Coins, distributions
from dp_sips.auditing.neighbours import Neighbours, hypergraphs, users_for
from dp_sips.auditing.targets import epsilons, promise

_CHANCES = (0.001, 0.01, 0.1, 0.5, 0.9)


def nearest(made: Plan, pairs: Sequence[Neighbours]) -> float:
    """Return the largest true δ(ε) of the pairs, relative to the promise, at several ε."""
    engine, coins = MemoryEngine(threads=1), Coins()
    one, other = (
        distributions(made, engine, pairs, extra=extra, seed=5, coins=coins)
        for extra in (True, False)
    )
    return max(
        true_delta(a, b, epsilon) / promise(made, epsilon)
        for epsilon in epsilons(made)
        for a, b in zip(one, other, strict=True)
    )


def mad2r_releases() -> None:
    """MAD2R: one item at several chances of release, and random sets of three.

    Most of the budget is one round's, so that what its verdicts show comes near the promise.
    """
    for share in (0.05, 0.9):
        made = plan(Mad2R(share=share), epsilon=1.0, delta=1e-5, max_items=3)
        shared = [Neighbours(((0,),) * users_for(made, chance), (0,)) for chance in _CHANCES]
        drawn = hypergraphs(made, 6, 3, seed=1, bounded=True)
        assert 0.75 < nearest(made, [*shared, *drawn]) <= 1 + 1e-9


def mad2r_cut_sets() -> None:
    """MAD2R: of two items of a user's own, one counts and the other is never released."""
    mechanism = Mad2R(share=0.5, highest=1.0, upper=6.0)
    made = plan(mechanism, epsilon=0.5, delta=1e-5, max_items=1)
    assert 0.9 < nearest(made, [Neighbours((), (0, 1)), Neighbours(((1,),), (0, 1))]) <= 1 + 1e-9


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check for check in (mad2r_releases, mad2r_cut_sets)
}

"""The release rule: a coin for each item, whose chance depends on nothing but its weight.

Only the verdict leaves, so noise need not be added to a weight: an item of weight w is released
with probability π(w). The table π is the largest one from π(0) = 0 on that hides a user (Harrison
and Manurangsi have the idea of release rules that add no noise).

Definition. Two distributions are d-approximately (α, x)-RDP if P = (1−d) P₁ + d P₂ and
Q = (1−d) Q₁ + d Q₂ with D_α(P₁‖Q₁) ≤ x and D_α(Q₁‖P₁) ≤ x: Bun and Steinke's Definition 8.1 with
one order α. A larger d or x asks for less.

Guarantee. Let a user add 0 < v ≤ 1 to an item of any weight w; then the coins π(w) and π(w+v) are
d(v)-approximately (α, e·v²)-RDP, with 1 − d(v) = (1−δ)^(v²). Hence

  a round:     the coins are independent. The good parts of all of a user's items hold together
               with probability Π(1 − d(v_u)) = (1−δ)^(Σv²), and D_α adds up to e·Σv². With an L2
               norm of at most 1 the verdicts are δ-approximately (α, e)-RDP. Items that the user
               holds alone are no special case: π(0) = 0 is a coin like others. Nor is there a Δ0.
  all rounds:  whatever earlier verdicts did to the sets, given those verdicts (and bits that have
               nothing to do with the coins) the next round is such a round. The products of the
               good parts have weight Π(1−δ_i), and D_α of them is at most Σe_i (Mironov's
               Proposition 1, as in Bun and Steinke's Lemma 8.2).
  conversion:  P(Y) ≤ δ + (1−δ) P₁(Y), and P₁(Y) ≤ e^ε Q₁(Y) + δ' by Proposition 7 of Canonne,
               Kamath and Steinke. So the release is (ε, δ + (1−δ) δ')-DP with
               δ' = exp((α−1)(e−ε)) / (α−1) · (1−1/α)^α: `rule_delta`.

The table. Of two coins p ≤ p', the good parts may be any a in [(p−d)/(1−d), p/(1−d)] and b in
[(p'−d)/(1−d), p'/(1−d)], cut to [0, 1]. If these intervals meet, a = b will do. Otherwise the
nearest two are a = p/(1−d) and b = (p'−d)/(1−d) > a, and as D_α is quasi-convex, no others diverge
less. So p' is allowed if and only if it is at most F(p; d, x) = d + (1−d) q, q the largest number
whose divergences to and from min(1, p/(1−d)) are at most x. F grows with p, d and x; F(0) = d, and
F(p) = 1 only from p ≥ 1−d on. On the lattice of step h,

    π[0] = 0,    π[j] = min over 1 ≤ k ≤ min(j, 1/h) of F(π[j−k]; d(kh), e·(kh)²)

is the largest table that is allowed. Standing still is always allowed: π[j−1] ≤ F(π[j−1−k]), which
is at most F(π[j−k]), and π[j−1] ≤ d((j−1)h) ≤ d(jh) = F(π[0]) at the start. So every choice between
π[j−1] and the minimum is allowed, and so is the last value for all weights beyond the end.

Flatter weights. With γ and a largest K, a user with k ≤ K items gives the same whole number v(k) of
cells to each, about k^−γ of 1/h, and nothing else occurs. Then the norm plays no role: a move by
v(k) cells may cost 1/k of e and of log(1−δ), since the k moves of one user cost k times that,

    π[j] = min over v ≤ min(j, v(1)) of F(π[j−v]; d = 1 − (1−δ)^c(v), c(v)·e),   c(v) = 1/K(v),

with K(v) the largest k that has v(k) ≥ v. At v = v(k) the cost is at most 1/k, as K(v) ≥ k. Moves
that do not occur take nothing away: v costs what the next larger v' that occurs does, and F(π[j−v])
is at least F(π[j−v']); before j = v', they keep the table from falling at v'.
And c rises with v, as squares do, so that everything said above holds. The guarantee is that of a
round, with Σv² replaced by k·c(v(k)) ≤ 1. Users of long lists move items by more than 1/√k of what
a user with one item does, so items of long lists need fewer users, and those of short ones more.

The lattice. Contributions are themselves multiples of h: `weights.weight` rounds 1/√k down, so that
sums lie on the lattice. To round sums instead would be wrong: a v just above (k−1)h could move a
sum by k cells, and a tiny v by one. The table would have to charge that one to v = 0, and could
never leave 0. Rounding contributions costs a user with k items less than h√k of its weight: at
h = 2⁻⁸ at most 1.8 % for up to 20 items and 4 % for up to 100, half of that on average. The table
itself hardly depends on h: a coarser one has fewer moves to hide, and is a little higher.

Rounding. T = a f(b/a) + (1−a) f((1−b)/(1−a)) with f(r) = r^α − 1 − α(r−1) is exp((α−1) D_α) − 1 as
a sum of terms ≥ 0: they do not cancel. The smaller of π and 1−π is kept as a float of its own.
The gap p' − p − d is off by 2⁻⁵² (p' − p + d): the slack in d covers that where p' − p < 2²⁰ d, and
elsewhere d is too small to cancel anything. Ratios are then good to some 2⁻⁵⁰, which moves T by
2⁻⁵⁰ (α + 2 + 1/(α−1)) of itself, since (r−1) f'(r) is at most that many times f(r). The value of
f is good to 2⁻⁵⁰ (α|r−1| + (1 + α|log r|) |r^α − 1|). The first part comes to 2⁻⁴⁹ α|b−a| in T, and
|b−a| ≤ √(x/2) by Pinsker's inequality, so it is at most 2⁻⁴⁹ α/((α−1)√x) of (α−1)x; the second is
like it near r = 1, and elsewhere below 2⁻⁴⁰ of f, as α|log r| < 710 where r^α is finite.
`_TABLE_SLACK` = 2⁻³⁰ is taken from T and from d, and `_check` rejects parameters for which that is
not enough. What is stored has passed the test in floats.

Public: everything here except the weights that `ReleaseRule.odds` is asked about.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dp_sips.errors import UsageError
from dp_sips.privacy.arrays import Floats, Weights
from dp_sips.privacy.budget import LEAST_EPSILON, check_delta, check_epsilon, rounded_up
from dp_sips.privacy.search import boundary, minimum
from dp_sips.privacy.weights import UNIT_BITS, weight_table

STEP_BITS: Final = 8
"""The lattice has a step of 2⁻⁸ unless told otherwise."""

# Taken from T and from d: covers the rounding in a table ("Rounding", above).
_TABLE_SLACK: Final = 2.0**-30

_HALF: Final = 0.5

# The least h √e (α−1)/α, and one over the largest α, for which `_TABLE_SLACK` covers all rounding.
_FINEST: Final = 2.0**-17

# exp of this is a float.
_LARGEST_LOG: Final = 700

# A step of the table is found to within this part of itself, from below.
_TOLERANCE: Final = 1e-5

# A step that is a smaller part of π or of 1 − π than this is none.
_LEAST_STEP: Final = 2.0**-20

# Tables of more cells than this get a coarser lattice, down to the coarsest.
_CELLS: Final = 6000
_COARSEST: Final = 5

# So many cells up to the median tell one rule from another in calibration.
_ENOUGH: Final = 24

# log(1/δ)/ε is about half of the median; longer tables than this take minutes.
_LONGEST: Final = 1000


def release_table(alpha: float, e: float, delta: float, step_bits: int = STEP_BITS) -> Floats:
    """Return π[0], π[1], …: the probability of release at weight 0, h, 2h, …, h = 2^-step_bits.

    The last entry is 1 and stands for every larger weight too.

    Guarantee: every two entries at most 1/h apart are d(v)-approximately (α, e·v²)-RDP coins.
    """
    return ReleaseRule(alpha, e, delta, step_bits).table


@dataclass(frozen=True)
class ReleaseRule:
    """One round's rule.

    Guarantee: with contributions of L2 norm ≤ 1 on the lattice, such as `weights.weight_table` has,
    the verdicts of a round are δ-approximately (α, e)-RDP for one user added or removed. With
    `gamma` and `largest`, the same for contributions of weight_table(largest, step_bits, gamma).

    Attributes:
        alpha: α, the order of the Rényi divergence.
        e: The divergence that a user of weight 1 may cause.
        delta: δ, the chance of an item of weight 1 that only one user holds.
        step_bits: The lattice has a step of 2^-step_bits.
        gamma: γ, where each of k items gets k^−γ; None for any weights of norm 1.
        largest: K, the most items of a user, where there is a γ.
    """

    alpha: float
    e: float
    delta: float
    step_bits: int = STEP_BITS
    gamma: float | None = None
    largest: int | None = None

    def __post_init__(self) -> None:
        _check(self)

    @property
    def table(self) -> Floats:
        """The probability of release at each multiple of the step."""
        return _tables(self)[0]

    @property
    def median(self) -> float:
        """The least weight that is released with a probability of at least one half."""
        return int(np.argmax(self.table >= _HALF)) * 2.0**-self.step_bits

    def odds(self, weights: Weights) -> tuple[Floats, Floats]:
        """Return π and 1 − π of each weight, given in units of 2⁻³⁰."""
        released, missed = _tables(self)
        cells = self._cells(weights)
        return released[cells], missed[cells]

    def _cells(self, weights: Weights) -> NDArray[np.intp]:
        shift = np.uint64(UNIT_BITS - self.step_bits)
        cells: Weights = weights >> shift
        if np.any(cells << shift != weights):
            raise UsageError(f"weights must be sums of weight_table(…, {self.step_bits})")
        inside: Weights = np.minimum(cells, np.uint64(len(self.table) - 1))
        return inside.astype(np.intp)


def exact_power(gamma: float) -> Fraction:
    """Return γ as a fraction with a denominator of 100 at most: weights are made of that."""
    return Fraction(gamma).limit_denominator(100)


def calibrate_rule(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    gamma: float | None = None,
    largest: int | None = None,
) -> tuple[ReleaseRule, ...]:
    """Return one rule for each share, together (ε, δ)-DP, such that the last median is lowest.

    Each round gets its share of e and of log(1−δ_T); shares need not add up to one. α and the part
    of δ that goes into δ_T are searched for on a coarse lattice. With `gamma` and `largest`, the
    rules are for flatter weights.

    Guarantee: `rule_delta(rules, epsilon) <= delta`, in floats, for every candidate.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if not shares or not all(0 < share < math.inf for share in shares):
        raise UsageError(f"shares must be positive and finite, at least one, got {shares}")

    def rules_of(log_order: float, part: float) -> tuple[ReleaseRule, ...]:
        found = _rules(epsilon, delta, shares, 1 + math.exp(log_order), part)
        return tuple(replace(rule, gamma=gamma, largest=largest) for rule in found)

    def median(log_order: float, part: float) -> float:
        rules = rules_of(log_order, part)
        return _coarse_median(rules[-1]) if rules else math.inf

    if epsilon < least_epsilon(delta):
        bound = least_epsilon(delta)
        raise UsageError(f"epsilon must be at least {bound} for a release rule, got {epsilon}")
    # Below the first of these orders next to nothing is left for e. The best part of δ hardly
    # depends on the order, so each is searched for once.
    least = math.log(-math.log(delta) / epsilon) + 0.1
    log_order = minimum(lambda log: median(log, _HALF), least, least + 1.5, width=0.05)
    part = minimum(lambda part: median(log_order, part), 0.1, 0.9, width=0.05)
    found = rules_of(log_order, part)
    if not found:
        raise UsageError(
            f"no release rule is ({epsilon}, {delta})-DP: give a larger epsilon or delta"
        )
    return tuple(replace(rule, step_bits=_step_bits(_coarse_median(rule))) for rule in found)


def least_epsilon(delta: float) -> float:
    """Return the ε below which tables would be too long to work out."""
    return -math.log(delta) / _LONGEST


def rule_delta(rules: Sequence[ReleaseRule], epsilon: float, more: float = 0.0) -> float:
    """Return the δ with which rounds of these rules together are (ε, δ)-DP, rounded up.

    `more` is ρ of a Gaussian mechanism on the release (`joint.py`): its D_α is at most αρ.
    """
    alpha, e, own = _compose(rules)
    return _delta_at(alpha, e + rounded_up(alpha * more), own, check_epsilon(epsilon))


def rule_epsilon(rules: Sequence[ReleaseRule], delta: float) -> float:
    """Return an ε with `rule_delta(rules, epsilon) <= delta`, the smallest except for rounding."""
    alpha, e, own = _compose(rules)
    if not own < check_delta(delta):
        raise UsageError(
            f"delta must be above {own}, which the rules themselves spend, got {delta}"
        )

    def holds(epsilon: float) -> bool:
        return _delta_at(alpha, e, own, epsilon) <= delta

    if holds(LEAST_EPSILON):
        return LEAST_EPSILON
    return boundary(holds, e - math.log(delta - own) / (alpha - 1), factor=0.5)


def _compose(rules: Sequence[ReleaseRule]) -> tuple[float, float, float]:
    """Return α, Σe_i and 1 − Π(1−δ_i), rounded up."""
    orders = {rule.alpha for rule in rules}
    if len(orders) != 1:
        raise UsageError(f"rules must have one alpha in common, got {sorted(orders)}")
    e = sum(Fraction(rule.e) for rule in rules)
    kept = math.prod(1 - Fraction(rule.delta) for rule in rules)
    return orders.pop(), _above(Fraction(e)), _above(1 - Fraction(kept))


def _above(exact: Fraction) -> float:
    return math.nextafter(float(exact), math.inf)


def _delta_at(alpha: float, e: float, own: float, epsilon: float) -> float:
    """Return δ_T + (1−δ_T) exp((α−1)(e−ε)) / (α−1) · (1−1/α)^α, rounded up."""
    order = alpha - 1
    terms = (order * e, -order * epsilon, -math.log(order), alpha * math.log1p(-1 / alpha))
    log = math.fsum(terms) + 2.0**-48 * math.fsum(map(abs, terms))
    return min(1.0, (own + (1 - own) * math.exp(min(0.0, log))) * (1 + 2.0**-48))


def _rules(
    epsilon: float, delta: float, shares: Sequence[float], alpha: float, part: float
) -> tuple[ReleaseRule, ...]:
    """Return the rules of order α with `part` of δ in δ_T; none where no e > 0 is left."""
    own, order, whole = part * delta, alpha - 1, math.fsum(shares)
    log = math.log((delta - own) / (1 - own)) + math.log(order) - alpha * math.log1p(-1 / alpha)
    e = epsilon + log / order
    # Covers the roundings of the sums; where a huge α magnifies them, the loop goes on.
    for slack in (2.0**-40, 2.0**-30, 2.0**-20):
        rules = tuple(
            ReleaseRule(
                alpha,
                e * (1 - slack) * share / whole,
                -math.expm1(math.log1p(-own * (1 - slack)) * share / whole),
                0,
            )
            for share in shares
            if e > 0
        )
        if rules and rule_delta(rules, epsilon) <= delta:
            return rules
    return ()


def _step_bits(median: float) -> int:
    """Return the finest lattice that keeps the table, twice as long as its median, short."""
    return max(_COARSEST, min(STEP_BITS, math.floor(math.log2(_CELLS / (2 * median)))))


@lru_cache(maxsize=1024)
def _coarse_median(rule: ReleaseRule) -> float:
    """Return about where the rule crosses one half: a percent low, as the lattice is coarse."""
    median = 0.0
    for step_bits in range(2, _COARSEST + 2):
        table = _grow(replace(rule, step_bits=step_bits), stop=0.5)[0]
        cell = len(table) - 1
        below, above = table[cell - 1], table[cell]
        median = (cell - (above - 0.5) / (above - below)) / (1 << step_bits)
        if cell > _ENOUGH:
            break
    return median


@lru_cache(maxsize=64)
def _tables(rule: ReleaseRule) -> tuple[Floats, Floats]:
    """Return π and 1 − π. The smaller of the two is the exact one."""
    return _grow(rule, stop=1.0)


@lru_cache(maxsize=64)
def _costs(step_bits: int, gamma: float | None, largest: int | None) -> Floats:
    """Return which part of e and of log(1−δ) a move by 1, 2, … cells may cost."""
    moves = np.arange(1, (1 << step_bits) + 1)
    if gamma is None or largest is None:
        squares: Floats = (moves / (1 << step_bits)) ** 2
        return squares
    steps = weight_table(largest, step_bits, exact_power(gamma)) >> np.uint64(UNIT_BITS - step_bits)
    return 1 / np.searchsorted(-steps[1:].astype(np.int64), -moves, side="right")


def _grow(rule: ReleaseRule, stop: float) -> tuple[Floats, Floats]:
    """Return π and 1 − π from weight 0 to the first entry of at least `stop`."""
    alpha, costs = rule.alpha, _costs(rule.step_bits, rule.gamma, rule.largest)
    bad = -np.expm1(costs * math.log1p(-rule.delta)) * (1 - _TABLE_SLACK)
    limit = np.expm1((alpha - 1) * rule.e * costs) * (1 - bad) * (1 - _TABLE_SLACK)
    released, missed, size, step = np.zeros(1024), np.ones(1024), 1, float(bad[0])
    with np.errstate(all="ignore"):
        while released[size - 1] < stop:
            if size == len(released):
                released, missed = np.resize(released, 2 * size), np.resize(missed, 2 * size)
            step = _largest_step(released[:size], missed[:size], bad, limit, alpha, step)
            if released[size - 1] + step <= _HALF:
                released[size] = released[size - 1] + step
                missed[size] = 1 - released[size]
            else:
                missed[size] = missed[size - 1] - step
                released[size] = 1 - missed[size]
            size += 1
    for table in (released, missed):
        table.flags.writeable = False
    return released[:size], missed[:size]


def _largest_step(  # noqa: PLR0917
    released: Floats, missed: Floats, bad: Floats, limit: Floats, alpha: float, guess: float
) -> float:
    """Return how much further than the last entry the next one may be, from below.

    The logarithm of a step's load is near to linear in that of the step, so a secant finds its
    target; where that fails, as after an entry of 0, which allows no divergence, a bisection does.
    Where steps are cells apart, entries between them stand still: next to nothing is nothing.
    """
    moves = min(len(released), len(bad))
    yes, no = released[: -moves - 1 : -1], missed[: -moves - 1 : -1]
    bad, limit = bad[:moves], limit[:moves]
    # Each difference is taken where the entries are small, and exact.
    ahead = (yes[0] - yes if yes[0] <= _HALF else no - no[0]) - bad
    no_before, room = no - bad, float(no[0])

    def load(step: float) -> float:
        return _load(ahead + step, yes, no_before, room - step, limit, alpha)

    if room <= bad[0] and load(room) <= 1:
        return room
    low, high, step = 0.0, room, min(max(guess, float(bad[0])), room / 2)
    least = _LEAST_STEP * min(float(yes[0]) or float(bad[0]), room)
    at_step = load(step)
    if at_step > 1 and load(least) > 1:
        return 0.0
    last, at_last = math.nan, math.nan
    while high - low > _TOLERANCE * high:
        low, high = (step, high) if at_step <= 1 else (low, step)
        if 1 - _TOLERANCE <= at_step <= 1:
            break
        following = _secant(last, at_last, step, at_step)
        last, at_last = step, at_step
        if not low < following < high:
            following = (low + high) / 2 if low and high < room else 2 * step if low else step / 2
        step = min(following, (low + room) / 2)
        at_step = load(step)
    return low


def _secant(last: float, at_last: float, step: float, at_step: float) -> float:
    """Return the step whose load is just below 1, on a line through two others in logarithms."""
    if not (0 < at_step < math.inf and 0 < at_last < math.inf and at_step != at_last):
        return step * (1.1 if at_step <= 1 else 0.9)
    slope = math.log(step / last) / math.log(at_step / at_last)
    return step * math.exp(min(1.0, -slope * (math.log(at_step) + _TOLERANCE / 2)))


def _load(  # noqa: PLR0917
    gap: Floats, yes: Floats, no: Floats, no_after: float, limit: Floats, alpha: float
) -> float:
    """Return √(T/limit), the largest of all moves and of both directions: at most 1 is allowed.

    `yes` and `no` are the good parts (1−d)·a and (1−d)·(1−a) before the move, which takes `gap`
    from one to the other; `no_after` is (1−d)·(1−b). Where they meet (gap ≤ 0, or a certain yes)
    there is no divergence; where 0 becomes more, it is infinite, or NaN as it is computed here.
    """
    yes_after = yes + gap
    forward = yes * _bulge(gap / yes, alpha) + no * _bulge(-gap / no, alpha)
    backward = yes_after * _bulge(-gap / yes_after, alpha) + no_after * _bulge(
        gap / no_after, alpha
    )
    loads = np.where((gap <= 0) | (no <= 0), 0.0, np.maximum(forward, backward) / limit)
    largest = float(loads.max())
    return math.inf if math.isnan(largest) else math.sqrt(largest)


def _bulge(excess: Floats, alpha: float) -> Floats:
    """Return f(r) = r^α − 1 − α(r−1) at r = 1 + excess."""
    return np.expm1(alpha * np.log1p(excess)) - alpha * excess


def _check(rule: ReleaseRule) -> None:
    """Reject parameters for which the table would not be private in floats, or never end."""
    alpha, e, step_bits = rule.alpha, rule.e, rule.step_bits
    check_delta(rule.delta)
    if not 1 < alpha < math.inf:
        raise UsageError(f"alpha must be above 1 and finite, got {alpha}")
    if not 0 < e < math.inf:
        raise UsageError(f"e must be positive and finite, got {e}")
    if not 0 <= step_bits <= UNIT_BITS:
        raise UsageError(f"step_bits must be in 0..{UNIT_BITS}, got {step_bits}")
    if (rule.gamma is None) != (rule.largest is None):
        raise UsageError(f"gamma and largest go together, got {rule.gamma} and {rule.largest}")
    least = 4.0**-step_bits if rule.largest is None else 1 / rule.largest
    resolution = math.sqrt(least * e) * (alpha - 1) / alpha
    if resolution < _FINEST or alpha > 1 / _FINEST or (alpha - 1) * e > _LARGEST_LOG:
        raise UsageError(
            f"no table for alpha={alpha}, e={e}, step_bits={step_bits}: too fine for floats"
        )

"""Nothing that fewer than m users hold: weights without their m − 1 largest contributions.

What an item's holders give to it in a round, a_1 ≥ a_2 ≥ … ≥ a_n ≥ 0, adds up to its weight. With
`min_users=m`, a mechanism works with the reduced weight

    R(a) = a_m + a_(m+1) + … + a_n,    0 if n < m,

in place of the sum. An item without weight is never released, so fewer than m holders are never
enough, whatever the noise.

Lemma. If a user who gives a joins, R grows by at least 0 and by at most a.

Proof. The m − 1 largest of more numbers add up to no less, so R grows by at most a. If a is among
the m − 1 largest, it takes the place of the (m−1)th largest b ≤ a, which now counts: R grows by b,
or by nothing if there were fewer than m − 1. Otherwise R grows by a. ∎

Nothing is lost beyond that: of all functions for which the lemma holds, and which are 0 for fewer
than m holders, R is the largest. For let the holders with the n − m + 1 smallest contributions
leave one by one: each takes at most what they give, and 0 is left.

So R is a whole number of the units in which contributions are given, and what one user changes is,
item by item, at most what that user gives: the L2 norm stays at most 1, on the same lattice.

What becomes of the arguments:

Gaussian rounds and a threshold (README.md, "The argument"). Read "weight" as R. The items of the
event E are those with R = 0 without the new user and R > 0 with it: m − 1 others give to them in
that round. By the lemma, R is at most what the new user gives, which for t such items is at most
1/√t, so T is high enough. On the neighbour without the user they have R = 0: they are not released,
and noise alone reaches T less often. An item with R = 0 stays in users' sets, as all do that are
not released. For ρ-zCDP: in a round, the noise of the t items is independent of all other noise;
given that none of the t reaches T, the verdicts on all others are a function of a Gaussian
mechanism, on either neighbour; and rounds compose, as a round depends on earlier releases alone.

Coins (`release_rule.py`, and `single.py` with one item a user). A table is made for every step
v ≤ a on its lattice, and d(v) ≤ d(a), v² ≤ a²: the good parts of a user's items have at least the
probability, and at most the divergence, that whole steps would have. π(0) = 0.

Votes (`matching.py`). An additional user raises the votes of one item by 1, and so R = votes less
m − 1 by 1 or 0, at one item. Votes are not more than holders.

Cumulative evidence (`evidence.py`, "Items of several users") needs a weaker theorem: there, what is
known of an item that fewer than m hold changes what its holders give to others.

Where users look at what others gave (`turns.py`, `adaptive.py`), a user changes what others give,
and the lemma says nothing: these mechanisms have no `min_users`.

Public: m. Sensitive: contributions and reduced weights.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dp_sips.privacy.arrays import Floats
from dp_sips.validation import check_whole

MOST_USERS: Final = 1_000_000
"""The largest m."""


def check_min_users(min_users: object) -> int:
    """Return m as an int; it must lie in 1..`MOST_USERS`."""
    return check_whole("min_users", min_users, most=MOST_USERS)


def reduced(contributions: Sequence[int], min_users: int) -> int:
    """Return R: the sum of an item's contributions without the m − 1 largest.

    Guarantee: a user who joins with contribution a raises it by a number in [0, a].
    """
    return sum(sorted(contributions, reverse=True)[min_users - 1 :])


def counted_holders(holders: Floats, min_users: int) -> Floats:
    """Return the number of holders who count, where all give the same."""
    return np.asarray(np.maximum(holders - (min_users - 1), 0.0))

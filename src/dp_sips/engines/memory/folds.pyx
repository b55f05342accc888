# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Compiled folds: users pay one after the other (mechanisms/turns.py says what, and why it is safe).

The policies are `dp_sips.mechanisms.turns`'s, to the bit; the reference engine calls those.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint32_t, uint64_t

from dp_sips.engines.memory.mixing cimport DP_PREFETCH

cdef extern from *:
    """typedef unsigned __int128 dp_wide;"""
    ctypedef unsigned long long dp_wide

cdef enum:
    LINE = 16  # numbers in a line of memory
    AHEAD = 64  # items of the next user that are fetched ahead of its turn


cdef class Turns:
    """The first `max_items` items of each user, in the order in which users take their turn."""

    cdef const uint32_t[::1] items, order
    cdef const uint64_t[::1] ends
    cdef uint64_t max_items

    def __init__(
        self, const uint32_t[::1] items, const uint64_t[::1] ends, const uint32_t[::1] order,
        uint64_t max_items,
    ):
        self.items, self.ends, self.order, self.max_items = items, ends, order, max_items

    cdef inline uint64_t start(self, Py_ssize_t turn) noexcept nogil:
        cdef uint32_t user = self.order[turn]
        return self.ends[user - 1] if user else 0

    cdef inline uint64_t size(self, Py_ssize_t turn) noexcept nogil:
        return min(self.max_items, self.ends[self.order[turn]] - self.start(turn))

    cdef inline void fetch(self, Py_ssize_t turn, const uint64_t *weights) noexcept nogil:
        """Fetch the weights of the next user's items, and the items of the one after it."""
        cdef uint64_t i, start
        if turn + 1 < self.order.shape[0]:
            start = self.start(turn + 1)
            for i in range(min(self.size(turn + 1), <uint64_t>AHEAD)):
                DP_PREFETCH(&weights[self.items[start + i]])
        if turn + 2 < self.order.shape[0]:
            start = self.start(turn + 2)
            for i in range(min(self.size(turn + 2), <uint64_t>AHEAD) // LINE + 1):
                DP_PREFETCH(&self.items[start] + i * LINE)


def pay_shares(
    Turns turns, uint64_t[::1] weights, uint32_t power, uint64_t target, uint64_t budget,
    double shave,
):
    """Let each user pay its items by `turns.Proportional`."""
    cdef Py_ssize_t turn, count = turns.order.shape[0]
    cdef uint64_t i, start, size, gap
    cdef dp_wide whole, power_of_gap, limit = budget
    cdef double scale
    cdef const uint32_t *items
    if power == 2:
        limit *= budget
    with nogil:
        for turn in range(count):
            turns.fetch(turn, &weights[0])
            size = turns.size(turn)
            items = &turns.items[turns.start(turn)]
            whole = 0
            for i in range(size):
                power_of_gap = gap = target - weights[items[i]]
                if power == 2:
                    power_of_gap *= gap
                whole += power_of_gap
            if whole <= limit:
                for i in range(size):
                    weights[items[i]] = target
            else:
                scale = <double>budget / (sqrt(<double>whole) if power == 2 else <double>whole)
                scale *= shave
                for i in range(size):
                    gap = target - weights[items[i]]
                    weights[items[i]] += <uint64_t>(<double>gap * scale)


def pay_favourites(
    Turns turns, uint64_t[::1] weights, uint64_t target, const uint32_t[::1] counts, bint of_items,
    const uint64_t[::1] words,
):
    """Let each user pay 1 to the item below the target with the largest count.

    Ties go to the item with the least word, or to the first where `words` is empty. `counts` has an
    entry for each item if `of_items`, and otherwise for each pair.
    """
    cdef Py_ssize_t turn, count = turns.order.shape[0]
    cdef uint64_t i, start
    cdef uint32_t item, often, best, most
    cdef bint found, by_word = words.shape[0] > 0
    with nogil:
        for turn in range(count):
            turns.fetch(turn, &weights[0])
            start = turns.start(turn)
            found, best, most = False, 0, 0
            for i in range(start, start + turns.size(turn)):
                item = turns.items[i]
                if weights[item] < target:
                    often = counts[item] if of_items else counts[i]
                    if (
                        not found
                        or often > most
                        or (by_word and often == most and words[item] < words[best])
                    ):
                        found, best, most = True, item, often
            if found:
                weights[best] += 1


def keep_counted(
    const uint32_t[::1] users, const uint32_t[::1] starts, const uint32_t[::1] items,
    uint32_t[::1] last, uint64_t[::1] places, uint32_t[::1] kept, uint32_t[::1] counts,
    uint64_t at, uint32_t[::1] lengths,
):
    """Copy new pairs to `kept` from `at` on, and count how often each occurs; return the new `at`.

    Row r belongs to users[j] where starts[j] ≤ r < starts[j + 1], and each user's rows are together;
    lengths[j] is set to how many pairs of that run are new. `last[item]` is one more than the item's
    last user, and `places[item]` is where the pair of both is.
    """
    cdef Py_ssize_t i, j
    cdef uint32_t item, user
    cdef uint64_t before, place
    with nogil:
        for j in range(users.shape[0]):
            before = at
            user = users[j] + 1
            for i in range(starts[j], starts[j + 1]):
                item = items[i]
                if last[item] != user:
                    last[item] = user
                    places[item] = at
                    kept[at] = item
                    counts[at] = 1
                    at += 1
                else:
                    place = places[item]
                    counts[place] += counts[place] < <uint32_t>0xFFFFFFFF
            lengths[j] = at - before
    return at

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops of reduced weights: plain arrays in, plain arrays out, without the GIL."""

from libc.math cimport sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t


def add_claims(
    const uint32_t[::1] items, const uint64_t[::1] ends, const uint8_t[::1] claims,
    uint32_t max_items, uint32_t[::1] totals, Py_ssize_t first, Py_ssize_t stop,
):
    """Sum up, for each user in [first, stop), the claims of the first items that have any."""
    cdef Py_ssize_t user, i, begin, end
    cdef uint32_t count, total, claim
    with nogil:
        for user in range(first, stop):
            begin = ends[user - 1] if user else 0
            end = ends[user]
            count, total = 0, 0
            for i in range(begin, end):
                claim = claims[items[i]]
                total += claim
                count += claim != 0
                if count == max_items:
                    break
            totals[user] = total


def take_largest(
    const uint32_t[::1] items, const uint64_t[::1] ends, const uint8_t[::1] claims,
    const uint32_t[::1] totals, const uint32_t[::1] order, const uint64_t[::1] weight_of_total,
    uint32_t step_bits, uint32_t most, uint32_t[::1] taken, uint64_t[::1] weights,
    uint32_t low, uint32_t high,
):
    """Take from the weight of each item in [low, high) what the first users in `order` gave to it.

    They are as many as `most` at the most; `taken` counts them. `totals` is what `add_claims`
    found, and users are in its order, so that an item's first users are those who gave most. A user
    gave weight_of_total[total] or, where that is empty, the root of claim/total in steps of
    2^-step_bits.
    """
    cdef Py_ssize_t n, user, i, begin
    cdef uint64_t weight
    cdef uint32_t item, claim, left
    cdef bint by_table = weight_of_total.shape[0] > 0
    with nogil:
        for n in range(order.shape[0]):
            user = order[n]
            left = totals[user]
            i = ends[user - 1] if user else 0
            while left:
                item = items[i]
                i += 1
                claim = claims[item]
                left -= claim
                if claim and low <= item < high and taken[item] < most:
                    taken[item] += 1
                    if by_table:
                        weight = weight_of_total[totals[user]]
                    else:
                        weight = <uint64_t>sqrt(
                            <double>((<uint64_t>claim << 2 * step_bits) // totals[user])
                        )
                    weights[item] -= weight

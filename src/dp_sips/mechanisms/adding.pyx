# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Evidence, compiled: noisy weights are added, and the sum says what an item claims; so do chances.

All loops but the first are of the accounting, and see no data.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t


def add_round(
    const uint64_t[::1] weights, const double[::1] evidence, double factor,
    const double[::1] edges, const uint8_t[::1] steps, double[::1] total, uint8_t[::1] claims,
):
    """Turn noise (`total`) into (noise + weight) · factor + evidence, rounded after each step.

    A claim is the sum of the steps whose edges the total reaches. Weights are below 2⁶³.
    """
    cdef Py_ssize_t i
    cdef double sum_, first, second, third, fourth
    cdef uint8_t claim, one, two, three, four
    if not weights.shape[0] == evidence.shape[0] == total.shape[0] == claims.shape[0]:
        raise ValueError("weights, evidence, noise and claims must have the same length")
    if not edges.shape[0] == steps.shape[0] == 4:
        raise ValueError("there must be four edges and four steps")
    first, second, third, fourth = edges[0], edges[1], edges[2], edges[3]
    one, two, three, four = steps[0], steps[1], steps[2], steps[3]
    with nogil:
        for i in range(weights.shape[0]):
            sum_ = total[i] + <double><int64_t>weights[i]
            sum_ = sum_ * factor
            sum_ = sum_ + evidence[i]
            total[i] = sum_
            claim = one * <uint8_t>(sum_ >= first) + two * <uint8_t>(sum_ >= second)
            claim += three * <uint8_t>(sum_ >= third) + four * <uint8_t>(sum_ >= fourth)
            claims[i] = claim


def add_claim(
    const double[:, ::1] chances, const int64_t[::1] claims, const int64_t[:, ::1] places,
    const double[::1] row, double[::1] more,
):
    """Turn F_n into F_{n+1}: Σ_a P[a] F_n(x − a) for each x of a round's window.

    A window is row[first : stop], its places; before it are as many zeros as the largest claim. Sums
    are taken in the order of the claims, of which the first is 0.
    """
    cdef Py_ssize_t i, x, one, two, three, four
    cdef double none, first, second, third, fourth, sum_
    if not chances.shape[0] == places.shape[0] or row.shape[0] != more.shape[0]:
        raise ValueError("each round must have a window, and both rows the same length")
    if not chances.shape[1] == claims.shape[0] == 5 or places.shape[1] != 2:
        raise ValueError("there must be five claims, and two ends of a window")
    one, two, three, four = claims[1], claims[2], claims[3], claims[4]
    for i in range(places.shape[0]):
        if not four <= places[i, 0] <= places[i, 1] <= row.shape[0]:
            raise ValueError("windows must be in the row, behind as many zeros as a claim can have")
    with nogil:
        for i in range(chances.shape[0]):
            none, first, second = chances[i, 0], chances[i, 1], chances[i, 2]
            third, fourth = chances[i, 3], chances[i, 4]
            for x in range(places[i, 0], places[i, 1]):
                sum_ = none * row[x]
                sum_ = sum_ + first * row[x - one]
                sum_ = sum_ + second * row[x - two]
                sum_ = sum_ + third * row[x - three]
                more[x] = sum_ + fourth * row[x - four]


def first_reached(
    const int64_t[:, ::1] places, const double[::1] row, const double[::1] chances,
    int64_t[:, ::1] found,
):
    """Write how far into each round's window F first reaches each of these chances, which ascend.

    Where F never does, this is the length of the window.
    """
    cdef Py_ssize_t i, k, x
    if found.shape[0] != places.shape[0] or found.shape[1] != chances.shape[0]:
        raise ValueError("there must be a number for each round and chance")
    for i in range(places.shape[0]):
        if not 0 <= places[i, 0] <= places[i, 1] <= row.shape[0]:
            raise ValueError("windows must be in the row")
    with nogil:
        for i in range(places.shape[0]):
            x = places[i, 0]
            for k in range(chances.shape[0]):
                while x < places[i, 1] and row[x] < chances[k]:
                    x += 1
                found[i, k] = x - places[i, 0]

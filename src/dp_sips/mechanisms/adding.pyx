# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Evidence, compiled: a round's noisy weights are added, and the sum says what an item claims."""

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

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
    cdef Py_ssize_t i, j
    cdef double sum_
    cdef uint8_t claim
    if not weights.shape[0] == evidence.shape[0] == total.shape[0] == claims.shape[0]:
        raise ValueError("weights, evidence, noise and claims must have the same length")
    if edges.shape[0] != steps.shape[0]:
        raise ValueError("edges and steps must have the same length")
    with nogil:
        for i in range(weights.shape[0]):
            sum_ = total[i] + <double><int64_t>weights[i]
            sum_ = sum_ * factor
            sum_ = sum_ + evidence[i]
            total[i] = sum_
            claim = 0
            for j in range(edges.shape[0]):
                claim += steps[j] * <uint8_t>(sum_ >= edges[j])
            claims[i] = claim

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops over active items: which they are, what is known of them, what was decided."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef uint64_t ALL_GONE = 0x0101010101010101


def pick(const uint8_t[::1] gone, Py_ssize_t first, Py_ssize_t stop, uint32_t[::1] numbers):
    """Write the numbers in [first, stop) of items that are not gone; return how many there are.

    Later, most are gone: eight at a time are passed over.
    """
    cdef Py_ssize_t i = first, j, count = 0
    cdef uint64_t eight
    with nogil:
        while i + 8 <= stop:
            memcpy(&eight, &gone[i], 8)
            if eight != ALL_GONE:
                for j in range(i, i + 8):
                    numbers[count] = <uint32_t>j
                    count += not gone[j]
            i += 8
        for j in range(i, stop):
            numbers[count] = <uint32_t>j
            count += not gone[j]
    return count


def gather(
    const uint32_t[::1] numbers, const uint64_t[::1] weights, const double[::1] evidence,
    uint64_t[::1] own_weights, double[::1] own_evidence,
):
    """Copy what is known of these items."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(numbers.shape[0]):
            own_weights[i] = weights[numbers[i]]
            own_evidence[i] = evidence[numbers[i]]


def scatter(
    const uint32_t[::1] numbers, const double[::1] own_evidence, const uint8_t[::1] own_released,
    const uint8_t[::1] own_claims, double[::1] evidence, uint8_t[::1] released,
    uint8_t[::1] claims, uint8_t[::1] gone,
):
    """Write what was decided about these items; what has no claim is gone."""
    cdef Py_ssize_t i
    cdef uint32_t item
    with nogil:
        for i in range(numbers.shape[0]):
            item = numbers[i]
            evidence[item] = own_evidence[i]
            released[item] = own_released[i]
            claims[item] = own_claims[i]
            gone[item] = own_claims[i] == 0

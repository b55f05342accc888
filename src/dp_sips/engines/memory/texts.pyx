# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled half of `privacy/blocks.py`: bytes to blocks, and bytes into chains of AES.

Encryption itself stays where it was, in `privacy/noise.py`. Words are those of little-endian
machines, as Arrow's buffers are.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    LONGEST = 15  # bytes of a text that is in its block itself
    AHEAD = 16  # values whose bytes are fetched ahead of their turn

ctypedef fused Offset:
    int32_t
    int64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define DP_PREFETCH_READ(address) __builtin_prefetch((address), 0)
    #else
    #define DP_PREFETCH_READ(address) ((void)0)
    #endif
    """
    void DP_PREFETCH_READ(const void *address) noexcept nogil


cdef inline void load(
    const uint8_t *data, int64_t at, int64_t end, int64_t size, uint64_t *low, uint64_t *high
) noexcept nogil:
    """Load up to 16 bytes from `at` to `end`, padded with zeros; the data has `size` bytes."""
    cdef uint64_t pair[2]
    cdef int64_t length = end - at
    if at + 16 <= size:
        memcpy(pair, data + at, 16)
        if length < 8:
            pair[0] &= (<uint64_t>1 << 8 * length) - 1
            pair[1] = 0
        elif length < 16:
            pair[1] &= (<uint64_t>1 << 8 * (length - 8)) - 1
    else:
        pair[0], pair[1] = 0, 0
        memcpy(pair, data + at, min(length, 16))
    low[0], high[0] = pair[0], pair[1]


def begin(
    const uint8_t[::1] data, const Offset[::1] offsets, const uint64_t[:, ::1] heads,
    uint64_t[:, ::1] blocks, uint32_t[::1] rows, uint64_t[:, ::1] states, uint32_t[::1] longer,
):
    """Write the blocks of short values; begin the chains of others, and list those too long for one.

    Value i is data[offsets[i] : offsets[i + 1]]. A chain of n bytes begins with heads[n], to which
    its first 16 bytes are added. Returns how many chains there are, and how many values for which
    there is no head.
    """
    cdef Py_ssize_t i, count = offsets.shape[0] - 1
    cdef int64_t size = data.shape[0], length, longest_chain = heads.shape[0] - 1
    cdef const uint8_t *bytes_ = &data[0] if size else NULL
    cdef uint32_t chained = 0, left = 0
    cdef uint64_t low, high
    with nogil:
        for i in range(count):
            length = offsets[i + 1] - offsets[i]
            if length <= LONGEST:
                load(bytes_, offsets[i], offsets[i + 1], size, &blocks[i, 0], &blocks[i, 1])
                blocks[i, 1] |= <uint64_t>length << 56
            elif length <= longest_chain:
                load(bytes_, offsets[i], offsets[i + 1], size, &low, &high)
                rows[chained] = <uint32_t>i
                states[chained, 0] = heads[length, 0] ^ low
                states[chained, 1] = heads[length, 1] ^ high
                chained += 1
            else:
                longer[left] = <uint32_t>i
                left += 1
    return chained, left


def absorb(
    const uint8_t[::1] data, const Offset[::1] offsets, int64_t done, uint64_t mark,
    uint64_t[:, ::1] blocks, uint32_t[::1] rows, uint64_t[:, ::1] states,
):
    """Add the next 16 bytes, after the first `done`, to each chain's state.

    A chain that has come to its end is written to its block, marked, and leaves the list: the rest
    moves together. Returns how many are left.
    """
    cdef Py_ssize_t j, count = states.shape[0]
    cdef int64_t size = data.shape[0], at, end
    cdef uint64_t low, high
    cdef uint32_t i, left = 0
    with nogil:
        for j in range(count):
            if j + AHEAD < count:
                DP_PREFETCH_READ(&data[0] + offsets[rows[j + AHEAD]] + done)
            i = rows[j]
            at, end = offsets[i] + done, offsets[i + 1]
            if at < end:
                load(&data[0], at, end, size, &low, &high)
                rows[left] = i
                states[left, 0] = states[j, 0] ^ low
                states[left, 1] = states[j, 1] ^ high
                left += 1
            else:
                blocks[i, 0] = states[j, 0]
                blocks[i, 1] = states[j, 1] | mark
    return left

# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The order of a user's items, compiled: words of `dp_sips.privacy.bounding`, to the bit."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from dp_sips.engines.memory.mixing cimport mix

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define DP_BITS(x) (64 - __builtin_clzll(x))
    #else
    static int DP_BITS(uint64_t x) { int n = 0; for (; x; x >>= 1) n++; return n; }
    #endif
    """
    int DP_BITS(uint64_t x) noexcept nogil  # of a number above 0

cdef uint64_t INTEGER = 0xF0  # the last byte of a block says what it is: `dp_sips.privacy.blocks`
cdef uint64_t NULL_ITEM = 0xF1
cdef uint64_t LONGER = 16  # the length of all that is longer than 15 bytes
cdef uint64_t POWERS[20]  # of ten; in place of 10⁰ stands 0, as zero has a digit, too

for _place in range(20):
    POWERS[_place] = 10**_place if _place else 0


cdef inline uint64_t length_of(const uint64_t *block) noexcept nogil:
    cdef uint64_t tag = block[1] >> 56, size = block[0]
    cdef bint negative = <int64_t>size < 0
    cdef int about
    if tag == INTEGER:
        size = 0 - size if negative else size
        about = DP_BITS(size | 1) * 1233 >> 12  # 1233/4096 is about log10 2
        return about + (size >= POWERS[about]) + negative
    return 0 if tag == NULL_ITEM else min(tag, LONGER)


cdef inline uint64_t word_of(const uint64_t *block, uint64_t seed) noexcept nogil:
    return mix(block[0] ^ mix(block[1] ^ seed))


def scrambled(const uint64_t[:, ::1] blocks, uint64_t seed, uint64_t[::1] words):
    """Write the words of users or items, as many as fit; `seed` is the key's word for them."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(min(blocks.shape[0], words.shape[0])):
            words[i] = word_of(&blocks[i, 0], seed)


def precedence(
    const uint64_t[:, ::1] blocks, uint64_t seed, const uint32_t[::1] counts, uint64_t[::1] words
):
    """Write the items' words of precedence; there are as many public counts as items, or none.

    `seed` is the key's word for bounding items.
    """
    cdef Py_ssize_t i
    cdef bint counted = counts.shape[0] > 0
    cdef uint64_t rare = 0, word
    with nogil:
        for i in range(blocks.shape[0]):
            if counted:
                rare = <uint32_t>~counts[i]
            word = word_of(&blocks[i, 0], seed)
            words[i] = rare << 32 | length_of(&blocks[i, 0]) << 27 | word >> 38 << 1

"""What both files of compiled loops need."""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define DP_PREFETCH(address) __builtin_prefetch((address), 1)
    #else
    #define DP_PREFETCH(address) ((void)0)
    #endif
    """
    void DP_PREFETCH(const void *address) noexcept nogil


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Scramble 64 bits: `dp_sips.privacy.bounding.mix`, to the bit."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)

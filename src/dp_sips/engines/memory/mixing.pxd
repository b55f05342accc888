"""What several files of compiled loops need."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define DP_PREFETCH(address) __builtin_prefetch((address), 1)
    #define DP_READ(address) __atomic_load_n((address), __ATOMIC_ACQUIRE)
    #define DP_WRITE(address, value) __atomic_store_n((address), (value), __ATOMIC_RELEASE)
    #else
    #define DP_PREFETCH(address) ((void)0)
    #define DP_READ(address) (*(volatile const uint32_t *)(address))
    #define DP_WRITE(address, value) (*(volatile uint32_t *)(address) = (value))
    #endif
    #if defined(__SIZEOF_INT128__)
    #define DP_SCALE(x, n) ((uint64_t)(((unsigned __int128)(x) * (n)) >> 64))
    #else
    #define DP_SCALE(x, n) ((((x) >> 32) * (n)) >> 32)
    #endif
    #define DP_SPREAD UINT64_C(0x9E3779B97F4A7C15)
    """
    uint64_t SPREAD "DP_SPREAD"  # an odd number without a pattern
    void DP_PREFETCH(const void *address) noexcept nogil
    # For numbers that one thread writes while others may read: who sees one sees what came before.
    uint32_t DP_READ(const uint32_t *address) noexcept nogil
    void DP_WRITE(uint32_t *address, uint32_t value) noexcept nogil
    uint64_t DP_SCALE(uint64_t x, uint64_t n) noexcept nogil


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Scramble 64 bits: `dp_sips.privacy.bounding.mix`, to the bit."""
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef inline uint64_t copy_distinct(
    const uint32_t *items, uint64_t i, uint64_t end, uint32_t *kept, uint64_t at, uint32_t *slots,
    uint32_t bits,
) noexcept nogil:
    """Copy the items that have no slot yet from items[i : end] to kept[at:]; return where they end.

    Each gets a slot, one of 2^bits, which holds the item plus one; other slots are 0.
    """
    cdef uint64_t place, mask = (<uint64_t>1 << bits) - 1
    cdef uint32_t item
    while i < end:
        item = items[i]
        place = item * SPREAD >> (64 - bits)
        while slots[place] and slots[place] != item + 1:
            place = (place + 1) & mask
        kept[at] = item
        at += slots[place] == 0
        slots[place] = item + 1
        i += 1
    return at

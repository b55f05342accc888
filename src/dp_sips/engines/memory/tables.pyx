# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Tables that number distinct values, compiled. They release the GIL: shards work side by side."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from dp_sips.engines.memory.growing import Growing
from dp_sips.engines.memory.mixing cimport DP_PREFETCH, DP_READ, DP_SCALE, DP_WRITE, SPREAD, mix

cdef enum:
    BLOCK = 1024  # rows of a batch that are looked up together
    AHEAD = 64  # rows whose memory is fetched ahead of their turn
    LOOK = 32  # rows whose slots are looked for ahead of their turn, so that values can be fetched
    LOT = 1024  # numbers that a shard takes at a time
    LINE_BITS = 4  # 2⁴ numbers are on a line of memory
    MOST_SHARDS = 256  # a shard's number is a byte where rows are shared out

LOT_SIZE = LOT


cdef inline uint32_t hash_of_word(uint64_t word, uint64_t seed) noexcept nogil:
    """Return a 32-bit hash. Each step is one-to-one: words below 2³² never share a hash."""
    cdef uint32_t h = <uint32_t>word ^ <uint32_t>seed
    if word >> 32:
        h ^= <uint32_t>mix(word >> 32 ^ seed)
    h = (h ^ (h >> 16)) * <uint32_t>0x7FEB352D
    h = (h ^ (h >> 15)) * <uint32_t>0x846CA68B
    return h ^ (h >> 16)


def share_out(
    const uint64_t[:, ::1] values, const uint32_t[::1] known, uint64_t seed, uint32_t[::1] numbers,
    uint32_t[::1] rows, uint64_t[::1] ends,
):
    """Number the rows whose values have a number in `known`, and share out the others.

    `known` is the list of small values' numbers, plus one, that shards share, or is empty. Other
    rows are written to `rows`, which is as long as there are values, those of one shard after those
    of another; `ends` is set to where each shard's end. Shards may number values of earlier rows at
    the same time: what they have just added is found, or is among the others.
    """
    cdef uint32_t width = values.shape[1], s, shards = ends.shape[0]
    cdef Py_ssize_t i, count = values.shape[0], left
    cdef uint64_t places[MOST_SHARDS]
    cdef uint8_t *owners = <uint8_t *>malloc(count + 1)
    cdef uint32_t *others = <uint32_t *>malloc((count + 1) * sizeof(uint32_t))
    if owners == NULL or others == NULL:
        free(owners)
        free(others)
        raise MemoryError
    with nogil:
        # Three calls, so that each is compiled for its case.
        if width == 2:
            left = find_others(&values[0, 0], count, 2, NULL, 0, seed, shards, NULL, others, owners)
        elif known.shape[0] == 0:
            left = find_others(&values[0, 0], count, 1, NULL, 0, seed, shards, NULL, others, owners)
        else:
            left = find_others(
                &values[0, 0], count, 1, &known[0], known.shape[0], seed, shards, &numbers[0],
                others, owners,
            )
        memset(places, 0, sizeof(places))
        for i in range(left):
            places[owners[i]] += 1
        for s in range(shards):
            ends[s] = places[s] + (ends[s - 1] if s else 0)
            places[s] = ends[s] - places[s]
        for i in range(left):
            rows[places[owners[i]]] = others[i]
            places[owners[i]] += 1
    free(owners)
    free(others)


cdef inline Py_ssize_t find_others(
    const uint64_t *values, Py_ssize_t count, uint32_t width, const uint32_t *known, uint64_t small,
    uint64_t seed, uint64_t shards, uint32_t *numbers, uint32_t *others, uint8_t *owners,
) noexcept nogil:
    """Write the rows whose values have no number in `known`, and their shards; return how many.

    There must be room for one more row than values. Known numbers are written to `numbers`.
    """
    cdef Py_ssize_t i, left = 0, last = count - 1
    cdef uint64_t value
    cdef uint32_t n = 0
    # Without branches: no processor could predict which values are small.
    for i in range(count):
        others[left] = <uint32_t>i
        owners[left] = <uint8_t>shard_of(values + i * width, width, shards, seed)
        if known != NULL:
            value = values[i]
            n = DP_READ(&known[value if value < small else 0])
            n = n if value < small else 0
            numbers[i] = n - 1
            value = values[min(i + AHEAD, last)]
            DP_PREFETCH(&known[value if value < small else 0])
        left += n == 0
    return left


cdef inline uint64_t shard_of(
    const uint64_t *value, uint32_t width, uint64_t shards, uint64_t seed
) noexcept nogil:
    """Return the shard of a value. Small values on one line of memory have the same shard."""
    cdef uint64_t word = value[0] >> LINE_BITS if width == 1 else value[0] + value[1]
    return DP_SCALE((word ^ seed) * SPREAD, shards)


cdef class Shard:
    """One shard of a table that numbers distinct values in order of first appearance.

    A value is `width` 64-bit words, one or two. A shard looks only at the values that fall to it,
    so that several shards can work on one batch at once. Shards take numbers in turns, LOT at a
    time, so that no two of them write to the same line of memory. A slot holds a hash of 32 bits
    (low) and a number plus one (high), so that the table is small, and can grow without a look at
    the values. Integers below 2³² that differ have hashes that differ: as long as there are no
    others, finding the hash is finding the value.

    Values of one word below `small` need no hash: their numbers, plus one, are in a list that all
    shards share. What is on one line of memory there falls to the same shard.
    """

    cdef readonly uint32_t shard, shards, width, count
    cdef readonly uint32_t direct  # how many of the values counted are below `small`
    cdef uint32_t slotted  # how many have a slot, which they keep when they become small
    cdef bint exact  # whether all values that have a slot are integers below 2³²
    cdef object _growing, _small
    cdef uint64_t seed, mask, small
    cdef uint64_t *slots
    cdef uint32_t *numbers_of_small

    def __init__(self, uint32_t shard, uint32_t shards, uint32_t width, uint64_t seed):
        self.shard, self.shards, self.width, self.seed = shard, shards, width, seed
        self.count, self.direct, self.slotted, self.small = 0, 0, 0, 0
        self.exact = width == 1
        self._growing = Growing(np.uint64)
        self._use_slots(1 << 13)

    def _use_slots(self, uint64_t count):
        cdef uint64_t[::1] slots = self._growing.touched_upto(count)
        self.slots = &slots[0]
        self.mask = count - 1

    def _double(self):
        """Double the table in place: a second one would be as much fresh memory again.

        Slots are emptied and their contents put back one by one, starting behind a free slot. A
        content's new home is its old one or lies in the new half, so it is put back at or before
        its old place, or in the new half, and never behind a slot that has still to be emptied.
        """
        cdef uint64_t i, at, place, slot, first = 0, old = self.mask + 1
        self._use_slots(2 * old)
        with nogil:
            while self.slots[first]:
                first += 1
            for i in range(first + 1, first + old):
                at = i & (old - 1)
                slot = self.slots[at]
                if slot:
                    self.slots[at] = 0
                    place = <uint32_t>slot & self.mask
                    while self.slots[place]:
                        place = (place + 1) & self.mask
                    self.slots[place] = slot

    def use_direct(self, uint32_t[::1] numbers, uint64_t small, const uint64_t[:, ::1] words):
        """From now on, have the numbers of values below `small` in a list; first, of known ones."""
        cdef uint64_t n, value, number
        self._small = numbers
        self.numbers_of_small = &numbers[0]
        with nogil:
            for n in range(self.count):
                number = self.number_of(n)
                value = words[number, 0]
                if self.small <= value < small:
                    self.numbers_of_small[value] = <uint32_t>(number + 1)
                    self.direct += 1
        self.small = small

    def held(self):
        """Return the bytes that the slots take, or will take soon: twice as many once doubled."""
        if self._growing is None:
            return 0
        return 8 * (self.mask + 1) * (2 if self.slotted * <uint64_t>10 > (self.mask + 1) * 7 else 1)

    def free(self):
        """Give the memory of slots back; no more values are coming."""
        self._growing = self._small = None
        self.slots, self.numbers_of_small, self.small = NULL, NULL, 0

    def number(
        self, const uint64_t[:, ::1] values, const uint32_t[::1] rows, uint64_t[:, ::1] words,
        uint32_t[::1] numbers, uint32_t[::1] firsts,
    ):
        """Write the numbers of these rows' values to `numbers`, the rows of new ones to `firsts`.

        The rows ascend, and their values fall to this shard. `words[n]` is the value with number n;
        there must be room for as many more in each shard as there are rows. Returns how many values
        are new.
        """
        cdef Py_ssize_t count = rows.shape[0], start = 0
        cdef uint32_t new = 0, size
        with nogil:
            while start < count:
                if (self.slotted + BLOCK) * <uint64_t>20 > (self.mask + 1) * 17:
                    with gil:
                        self._double()
                size = <uint32_t>min(count - start, BLOCK)
                # Two calls, so that each is compiled for one width.
                if self.width == 1:
                    new += self._number(
                        &values[0, 0], &rows[start], size, &words[0, 0], 1, &numbers[0],
                        &firsts[0] + new,
                    )
                else:
                    new += self._number(
                        &values[0, 0], &rows[start], size, &words[0, 0], 2, &numbers[0],
                        &firsts[0] + new,
                    )
                start += BLOCK
        return new

    cdef inline uint64_t number_of(self, uint64_t count) noexcept nogil:
        """Return the number of the value before which this shard had numbered `count`."""
        return ((count // LOT) * self.shards + self.shard) * LOT + count % LOT

    cdef inline uint32_t hash_of(self, const uint64_t *value, uint32_t width) noexcept nogil:
        if width == 2:
            return <uint32_t>mix(mix(value[0] ^ self.seed) ^ value[1])
        return hash_of_word(value[0], self.seed)

    cdef inline uint32_t _number(
        self, const uint64_t *values, const uint32_t *rows, uint32_t count, uint64_t *words,
        uint32_t width, uint32_t *numbers, uint32_t *firsts,
    ) noexcept nogil:
        cdef uint32_t hashes[BLOCK]
        cdef const void *homes[BLOCK + AHEAD]
        cdef uint64_t *slots = self.slots
        cdef uint64_t mask = self.mask, small = self.small, at = 0, slot, n
        cdef uint32_t new = 0, i, j, h
        cdef const uint64_t *value
        cdef bint exact = False
        for i in range(count):
            DP_PREFETCH(values + <uint64_t>rows[min(i + AHEAD, count - 1)] * width)
            value = values + <uint64_t>rows[i] * width
            hashes[i] = h = self.hash_of(value, width)
            homes[i] = &slots[h & mask]
            if width == 1 and value[0] < small:
                homes[i] = &self.numbers_of_small[value[0]]
        for i in range(AHEAD):
            homes[count + i] = slots
            DP_PREFETCH(homes[i])
        for i in range(count + LOOK):
            if i < count:
                DP_PREFETCH(homes[i + AHEAD])
                DP_PREFETCH(<const uint64_t *>homes[i + AHEAD] + 4)  # it may go on, on the next line
                h = hashes[i]
                at = h & mask
                if homes[i] == &slots[at]:
                    # The first slot that is free, or most likely the value's own. What comes before
                    # it will not change.
                    while slots[at] != 0 and <uint32_t>slots[at] != h:
                        at = (at + 1) & mask
                    homes[i] = &slots[at]
                    if slots[at] != 0 and not self.exact:
                        DP_PREFETCH(&words[((slots[at] >> 32) - 1) * width])
            if i < LOOK:
                continue
            j = i - LOOK
            value = values + <uint64_t>rows[j] * width
            if width == 1 and value[0] < small:
                n = self.numbers_of_small[value[0]]
            else:
                exact = self.exact and value[0] >> 32 == 0
                h = hashes[j]
                at = <const uint64_t *>homes[j] - slots
                n = 0
                while slots[at] != 0:
                    slot = slots[at]
                    if <uint32_t>slot == h:
                        n = slot >> 32
                        if exact or words[(n - 1) * width] == value[0] and (
                            width == 1 or words[(n - 1) * 2 + 1] == value[1]
                        ):
                            break
                        n = 0
                    at = (at + 1) & mask
            if n == 0:
                n = self.number_of(self.count) + 1
                self.count += 1
                if width == 1 and value[0] < small:
                    DP_WRITE(&self.numbers_of_small[value[0]], <uint32_t>n)
                    self.direct += 1
                else:
                    slots[at] = h | n << 32
                    self.slotted += 1
                    self.exact = exact
                words[(n - 1) * width] = value[0]
                if width == 2:
                    words[(n - 1) * 2 + 1] = value[1]
                firsts[new] = rows[j]
                new += 1
            numbers[rows[j]] = <uint32_t>(n - 1)
        return new

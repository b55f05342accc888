# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Repeats of users whose rows are together, dropped as they come, with a table of one user's items.

It fits the cache, unless that user has very many.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dp_sips.engines.memory.mixing cimport SPREAD, copy_distinct

cdef enum:
    RECENT_BITS = 10  # bits of a hash that say where an item is remembered
    LEAST_BITS = 4  # of a place in the table of one user's items


def drop_recent(const uint64_t[:, ::1] items, uint32_t[::1] starts, uint64_t[:, ::1] kept):
    """Copy to `kept` the items of runs without most of those that repeat one; return how many.

    Run j is from starts[j] to starts[j + 1], and `starts` follow. What is left out is a repeat for
    sure; where two items of a run are remembered in the same place, some stay.
    """
    cdef Py_ssize_t i = 0, j, end
    cdef uint32_t at = 0, place
    cdef uint64_t item
    cdef uint64_t recent[1 << RECENT_BITS]
    cdef uint32_t run_of[1 << RECENT_BITS]  # one more than the run of the item that is there
    memset(run_of, 0, sizeof(run_of))
    with nogil:
        for j in range(1, starts.shape[0]):
            end = starts[j]
            while i < end:
                item = items[i, 0]
                place = <uint32_t>(item * SPREAD >> (64 - RECENT_BITS))
                kept[at, 0] = item
                at += run_of[place] != j or recent[place] != item
                recent[place] = item
                run_of[place] = <uint32_t>j
                i += 1
            starts[j] = at
    return at


cdef class Together:
    """The items of the user that came last, batch after batch, while each user's rows are together.

    A slot holds an item plus one, or 0. At most half of 2^bits slots are filled.
    """

    cdef uint32_t *slots
    cdef uint64_t room  # slots that there is memory for: larger users may have come before
    cdef uint32_t user, count, bits

    def __init__(self):
        self.slots, self.room, self.user, self.count, self.bits = NULL, 0, 0, 0, 0

    def __dealloc__(self):
        free(self.slots)

    def held(self):
        """Return the bytes that the slots take."""
        return self.room * sizeof(uint32_t)

    def keep(
        self, const uint32_t[::1] users, const uint32_t[::1] starts, const uint32_t[::1] items,
        uint32_t[::1] pairs, uint64_t at, uint32_t[::1] lengths,
    ):
        """Write the items of rows that are no repeats from pairs[at] on; return where they end.

        Row r belongs to users[j] where starts[j] ≤ r < starts[j + 1]; lengths[j] is set to how many
        items are kept of that run. A user's items go on where those of its last run ended.
        """
        cdef Py_ssize_t j
        cdef uint64_t before
        with nogil:
            for j in range(users.shape[0]):
                if users[j] != self.user:
                    self.user, self.count, self.bits = users[j], 0, 0
                if not self.make_room(starts[j + 1] - starts[j], &pairs[0] + at):
                    with gil:
                        raise MemoryError
                before = at
                at = copy_distinct(
                    &items[0], starts[j], starts[j + 1], &pairs[0], at, self.slots, self.bits
                )
                lengths[j] = <uint32_t>(at - before)
                self.count += lengths[j]
        return at

    cdef bint make_room(self, uint64_t more, const uint32_t *end) noexcept nogil:
        """Have slots for so many more items; those that there are stand before `end`, in pairs."""
        cdef uint32_t bits = max(self.bits, <uint32_t>LEAST_BITS)
        cdef uint64_t place, n
        while <uint64_t>1 << bits < 2 * (self.count + more):
            bits += 1
        if bits == self.bits:
            return True
        if self.room < <uint64_t>1 << bits:
            free(self.slots)
            self.slots = <uint32_t *>malloc(sizeof(uint32_t) << bits)
            self.room = <uint64_t>1 << bits if self.slots != NULL else 0
            if self.slots == NULL:
                return False
        memset(self.slots, 0, sizeof(uint32_t) << bits)
        for n in range(1, self.count + <uint64_t>1):
            place = (end - n)[0] * SPREAD >> (64 - bits)
            while self.slots[place]:
                place = (place + 1) & ((<uint64_t>1 << bits) - 1)
            self.slots[place] = (end - n)[0] + 1
        self.bits = bits
        return True

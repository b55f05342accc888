# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Pairs of users whose rows are not together: sorted roughly as they come, exactly at the end.

A list has the pairs of a range of users, in the order of their rows. There are few enough lists for
each to be written to at the cost of a copy, and enough of them for the pairs of one to be put in
their places within the cache.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t

import numpy as np

from dp_sips.engines.memory.growing import Growing
from dp_sips.engines.memory.mixing cimport DP_PREFETCH

cdef enum:
    CHUNK = 1024  # pairs
    LISTS = 256  # more than this are joined, two by two, while a pair can tell the users of both
    LOW_BITS = 16  # of a user's number are with the pair; the list tells the others
    NARROWEST = 8  # bits of the numbers of a list's users, at first
    AHEAD = 16  # rows whose memory is fetched ahead of their turn
    NO_CHUNK = 0


cdef class Scattered:
    """Lists of pairs, each a chain of chunks.

    List n has the pairs of users from n << bits to (n + 1) << bits. Its chain begins with the chunk
    heads[n], and its next pair goes to ends[n], unless a chunk ends there. After a chunk comes
    after[chunk]. All chunks of a list except the last have CHUNK − missing[chunk] pairs. There is no
    chunk 0, which stands for none.
    """

    cdef readonly uint64_t count  # of all pairs
    cdef readonly uint32_t bits, lists
    cdef object _items, _lows, _missing, _after, _heads, _ends
    cdef uint64_t chunks

    def __init__(self):
        self.count, self.chunks, self.lists, self.bits = 0, 1, 0, NARROWEST
        self._items, self._lows = Growing(np.uint32), Growing(np.uint16)
        self._missing, self._after = Growing(np.uint32), Growing(np.uint32)
        self._heads, self._ends = Growing(np.uint32), Growing(np.uint64)

    def held(self):
        """Return the bytes that the pairs take."""
        return self.chunks * (CHUNK * 6 + 8)

    def memory(self):
        """Return the memory that items are kept in, for reuse once they have been placed."""
        return self._items.upto(0)[:self.chunks * CHUNK].view(np.uint8)

    def add(
        self, const uint32_t[::1] users, const uint32_t[::1] starts, const uint32_t[::1] items,
        uint32_t[::1] last, uint32_t user_count,
    ):
        """Add rows: row r belongs to users[j] < user_count where starts[j] ≤ r < starts[j + 1].

        `last[item]` is one more than the item's last user: a row that finds its own user there is a
        repeat, and left out. Where `last` is empty, repeats stay.
        """
        self._make_lists(user_count)
        cdef uint64_t most = self.chunks + items.shape[0] // CHUNK + self.lists + 1
        cdef uint32_t[::1] kept = self._items.upto(most * CHUNK), after = self._after.upto(most)
        cdef uint16_t[::1] lows = self._lows.upto(most * CHUNK)
        cdef uint32_t[::1] heads = self._heads.upto(self.lists)
        cdef uint64_t[::1] ends = self._ends.upto(self.lists)
        cdef Py_ssize_t i, j, rows = items.shape[0]
        cdef uint32_t item, user, part, bits = self.bits
        cdef uint64_t place, added = 0
        cdef bint drop = last.shape[0] > 0
        self._missing.upto(most)
        with nogil:
            for j in range(users.shape[0]):
                user = users[j]
                part = user >> bits
                for i in range(starts[j], starts[j + 1]):
                    item = items[i]
                    if drop:
                        if i + AHEAD < rows:
                            DP_PREFETCH(&last[items[i + AHEAD]])
                        if last[item] == user + 1:
                            continue
                        last[item] = user + 1
                    place = ends[part]
                    if place % CHUNK == 0:
                        if heads[part] == NO_CHUNK:
                            heads[part] = self.chunks
                        else:
                            after[place // CHUNK - 1] = self.chunks
                        after[self.chunks] = NO_CHUNK
                        place = self.chunks * CHUNK
                        self.chunks += 1
                    kept[place] = item
                    lows[place] = <uint16_t>user
                    ends[part] = place + 1
                    added += 1
        self.count += added

    def _make_lists(self, uint32_t user_count):
        """Have a list for every user below this."""
        while self.bits < LOW_BITS and (user_count - 1) >> self.bits >= LISTS:
            self._join()
        self.lists = max(self.lists, ((user_count - 1) >> self.bits) + 1)

    def _join(self):
        """Append every second list to the one before."""
        cdef uint32_t[::1] heads = self._heads.upto(0), after = self._after.upto(0)
        cdef uint32_t[::1] missing = self._missing.upto(0)
        cdef uint64_t[::1] ends = self._ends.upto(0)
        cdef uint64_t n, end, count = self.lists
        cdef uint32_t head
        for n in range(0, count, 2):
            head, end = heads[n], ends[n]
            if n + 1 < count and heads[n + 1] != NO_CHUNK:
                if head == NO_CHUNK:
                    head = heads[n + 1]
                else:
                    after[(end - 1) // CHUNK] = heads[n + 1]
                    missing[(end - 1) // CHUNK] = CHUNK - 1 - (end - 1) % CHUNK
                end = ends[n + 1]
            heads[n], ends[n] = NO_CHUNK, 0
            if n + 1 < count:
                heads[n + 1], ends[n + 1] = NO_CHUNK, 0
            heads[n // 2], ends[n // 2] = head, end
        self.lists, self.bits = (count + 1) // 2, self.bits + 1

    def add_sizes(self, uint32_t part, uint64_t[::1] sizes):
        """Add to the size of each user of a list how many pairs the list has of it."""
        cdef uint32_t[::1] heads = self._heads.upto(0), after = self._after.upto(0)
        cdef uint32_t[::1] missing = self._missing.upto(0)
        cdef uint64_t[::1] ends = self._ends.upto(0)
        cdef uint16_t[::1] lows = self._lows.upto(0)
        cdef uint32_t chunk = heads[part], low = (1 << self.bits) - 1
        cdef uint64_t first = <uint64_t>part << self.bits, i, begin, end
        with nogil:
            while chunk != NO_CHUNK:
                begin = <uint64_t>chunk * CHUNK
                end = begin + CHUNK - missing[chunk]
                chunk = after[chunk]
                for i in range(begin, ends[part] if chunk == NO_CHUNK else end):
                    sizes[first + (lows[i] & low)] += 1

    def place(self, uint32_t part, uint64_t[::1] places, uint32_t[::1] grouped):
        """Copy the pairs of a list to where their users' pairs go; `places[user]` moves on."""
        cdef uint32_t[::1] heads = self._heads.upto(0), after = self._after.upto(0)
        cdef uint32_t[::1] missing = self._missing.upto(0), items = self._items.upto(0)
        cdef uint64_t[::1] ends = self._ends.upto(0)
        cdef uint16_t[::1] lows = self._lows.upto(0)
        cdef uint32_t chunk = heads[part], low = (1 << self.bits) - 1
        cdef uint64_t first = <uint64_t>part << self.bits, i, begin, end, user
        with nogil:
            while chunk != NO_CHUNK:
                begin = <uint64_t>chunk * CHUNK
                end = begin + CHUNK - missing[chunk]
                chunk = after[chunk]
                for i in range(begin, ends[part] if chunk == NO_CHUNK else end):
                    user = first + (lows[i] & low)
                    grouped[places[user]] = items[i]
                    places[user] += 1

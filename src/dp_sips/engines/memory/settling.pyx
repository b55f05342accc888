# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Compiled matching: users' lists, and who is seated where (mechanisms/matching.py has the theorem).

A key is 64 bits: 4 count the laps left, 28 the requests left in this lap, and 32 are the user's turn,
which makes keys distinct and says whose they are. An item keeps the least keys: they stand in a
heap with the worst on top, where the next request looks first.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from dp_sips.engines.memory.mixing cimport DP_PREFETCH

cdef extern from *:
    """
    #if defined(__unix__) || defined(__APPLE__)
    #include <sched.h>
    #define DP_THREADS 1
    #define DP_LOCK(lock) while (__atomic_test_and_set((lock), __ATOMIC_ACQUIRE)) sched_yield()
    #define DP_UNLOCK(lock) __atomic_clear((lock), __ATOMIC_RELEASE)
    #define DP_GLANCE(address) __atomic_load_n((address), __ATOMIC_RELAXED)
    #define DP_SHOW(address, value) __atomic_store_n((address), (value), __ATOMIC_RELAXED)
    #else
    #define DP_THREADS 0
    #define DP_LOCK(lock) ((void)0)
    #define DP_UNLOCK(lock) ((void)0)
    #define DP_GLANCE(address) (*(address))
    #define DP_SHOW(address, value) (*(address) = (value))
    #endif
    """
    bint DP_THREADS
    void DP_LOCK(uint8_t *lock) noexcept nogil
    void DP_UNLOCK(uint8_t *lock) noexcept nogil
    uint64_t DP_GLANCE(const uint64_t *address) noexcept nogil
    void DP_SHOW(uint64_t *address, uint64_t value) noexcept nogil

cdef enum:
    AHEAD = 48  # items whose words are fetched ahead of their turn
    NEXT = 16  # users, and contested items, that are fetched ahead of theirs
    STANDING = 32  # users who stand and wait, a power of two
    FEW = 40  # numbers that are sorted by insertion
    LAP_SHIFT = 60
    LEFT_SHIFT = 32

GONE = 0xFFFFFFFFFFFFFFFF
"""The word of an item that is in nobody's set any more."""

NOWHERE = 0xFFFFFFFF
"""The last item of a list that has none."""

SIDE_BY_SIDE = bool(DP_THREADS)
"""Whether several threads may let users into a `Hall`: this compiler has locks."""

cdef uint64_t NO_WORD = 0xFFFFFFFFFFFFFFFF
cdef uint32_t NO_ITEM = 0xFFFFFFFF


cdef struct Entry:
    uint64_t word
    uint32_t item


cdef inline void sift(uint64_t *heap, Py_ssize_t top, Py_ssize_t size) noexcept nogil:
    """Let the key at `top` sink to where none below it is worse."""
    cdef uint64_t key = heap[top]
    cdef Py_ssize_t child = 2 * top + 1
    while child < size:
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= key:
            break
        heap[top] = heap[child]
        top = child
        child = 2 * top + 1
    heap[top] = key


cdef inline void make_heap(uint64_t *keys, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t top
    for top in range(size // 2 - 1, -1, -1):
        sift(keys, top, size)


cdef void sort(uint64_t *numbers, uint64_t *spare, Py_ssize_t count) noexcept nogil:
    """Sort numbers of 32 bits: few by insertion, many byte by byte, with room for as many more."""
    cdef Py_ssize_t places[256]
    cdef Py_ssize_t i, j, place, size
    cdef uint64_t one, bits = 0
    cdef uint64_t *sorted = numbers
    cdef int shift = 0
    if count <= FEW:
        for i in range(1, count):
            one = numbers[i]
            j = i
            while j > 0 and numbers[j - 1] > one:
                numbers[j] = numbers[j - 1]
                j -= 1
            numbers[j] = one
        return
    for i in range(count):
        bits |= numbers[i]
    while bits >> shift:
        memset(places, 0, sizeof(places))
        for i in range(count):
            places[sorted[i] >> shift & 255] += 1
        place = 0
        for i in range(256):
            size = places[i]
            places[i] = place
            place += size
        for i in range(count):
            one = sorted[i]
            spare[places[one >> shift & 255]] = one
            places[one >> shift & 255] += 1
        sorted, spare = spare, sorted
        shift += 8
    if sorted != numbers:
        memcpy(numbers, sorted, count * sizeof(uint64_t))


def arrange(
    const uint32_t[::1] items, const uint64_t[::1] ends, const uint64_t[::1] words,
    const uint32_t[::1] numbers, uint64_t max_items, Py_ssize_t first, Py_ssize_t stop,
    uint32_t[::1] listed, uint64_t[::1] begins, uint32_t[::1] lengths, uint32_t[::1] sizes,
    uint32_t[::1] lasts, uint8_t[::1] tied,
):
    """Make the lists of the users in [first, stop), as far as they can ever get on them.

    The last bit of an item's word says whether it may be full; such items are numbered in the order
    that they have on lists. Nobody who asks another item is turned away there, so a list is the
    numbers before the first of those, which is the user's last. `sizes` is how many items count.
    Where two equal words leave open which is the last, a user is tied: there is room for the longer
    list, which is to be made otherwise.
    """
    cdef Py_ssize_t user, i, count, kept, pairs = items.shape[0]
    cdef uint64_t word, bound, size, longest = 0, start, at = ends[first - 1] if first else 0
    cdef uint32_t item, last
    cdef bint tie
    cdef Entry *entries
    cdef uint64_t *ranks
    for user in range(first, stop):
        longest = max(longest, ends[user] - (ends[user - 1] if user else 0))
    entries = <Entry *>malloc((longest + 1) * sizeof(Entry))
    if entries == NULL:
        raise MemoryError
    ranks = <uint64_t *>entries  # in the same place: an entry is read before a rank is written there
    with nogil:
        for user in range(first, stop):
            start = ends[user - 1] if user else 0
            count, size, bound, last, tie = 0, 0, NO_WORD, NO_ITEM, False
            for i in range(<Py_ssize_t>start, <Py_ssize_t>ends[user]):
                if i + AHEAD < pairs:
                    DP_PREFETCH(&words[items[i + AHEAD]])
                item = items[i]
                word = words[item]
                if word == NO_WORD:
                    continue
                if word & 1:
                    if word <= bound | 1:
                        entries[count].word = word
                        entries[count].item = item
                        count += 1
                elif word < bound:
                    bound, last, tie = word, item, False
                elif word == bound:
                    tie = True
                size += 1
                if size == max_items:
                    break
            kept = 0
            for i in range(count):
                if i + NEXT < count:
                    DP_PREFETCH(&numbers[entries[i + NEXT].item])
                if entries[i].word <= bound | 1:
                    tie = tie or entries[i].word == bound | 1
                    ranks[kept] = numbers[entries[i].item]
                    kept += 1
            sort(ranks, ranks + kept, kept)  # an entry is as large as two ranks
            for i in range(kept):
                listed[at + i] = <uint32_t>ranks[i]
            begins[user] = at
            lengths[user] = kept
            sizes[user] = size
            lasts[user] = last
            tied[user] = tie
            at += kept
    free(entries)


def count(const uint32_t[::1] items, uint64_t[::1] weights, uint64_t unit):
    """Add a unit to the weight of each item as often as it occurs."""
    cdef Py_ssize_t i, rows = items.shape[0]
    with nogil:
        for i in range(rows):
            if i + AHEAD < rows:
                DP_PREFETCH(&weights[items[i + AHEAD]])
            weights[items[i]] += unit


cdef struct Person:
    uint64_t begin
    uint32_t size
    uint32_t length
    uint32_t last
    uint32_t loyal_to
    uint32_t place
    uint8_t lap
    uint8_t offers


cdef struct Desk:
    uint32_t seated
    uint8_t lock


cdef class Hall:
    """Seats users side by side: what comes of it does not depend on who asks when.

    Desks 0 … n − 1 are the items' seats, n … 2n − 1 their spare seats. A desk is one thread's at a
    time, and so is a user who stands: nobody else knows of them until they are seated. A desk's bar
    is its worst key once all seats are taken; before, it is above all keys. Bars only fall, so that
    a key that is not below the bar seen last is not below the bar. Most requests see nothing else,
    so bars are side by side.
    """

    cdef Person *people
    cdef Desk *desks
    cdef uint64_t *bars
    cdef uint64_t *keys
    cdef uint64_t items
    cdef uint32_t seats, spare, laps, rounds
    cdef const uint32_t[::1] listed

    def __cinit__(
        self, const uint32_t[::1] listed, uint64_t people, uint64_t items, uint32_t seats,
        uint32_t spare, uint32_t laps,
    ):
        cdef uint64_t n, keys = items * (<uint64_t>seats + spare)
        self.listed, self.items = listed, items
        self.seats, self.spare, self.laps, self.rounds = seats, spare, laps, laps + (spare > 0)
        self.people = <Person *>malloc(max(people, <uint64_t>1) * sizeof(Person))
        self.desks = <Desk *>malloc(max(2 * items, <uint64_t>1) * sizeof(Desk))
        self.bars = <uint64_t *>malloc(max(2 * items, <uint64_t>1) * sizeof(uint64_t))
        self.keys = <uint64_t *>malloc(max(keys, <uint64_t>1) * sizeof(uint64_t))
        if self.people == NULL or self.desks == NULL or self.bars == NULL or self.keys == NULL:
            raise MemoryError
        for n in range(2 * items):
            self.bars[n], self.desks[n].seated, self.desks[n].lock = NO_WORD, 0, 0

    def __dealloc__(self):
        free(self.people)
        free(self.desks)
        free(self.bars)
        free(self.keys)

    def invite(
        self, const uint64_t[::1] begins, const uint32_t[::1] lengths, const uint32_t[::1] sizes,
        const uint32_t[::1] lasts, const uint32_t[::1] loyal_to, const uint32_t[::1] users,
        Py_ssize_t first, Py_ssize_t stop,
    ):
        """Note the lists of users[first : stop], whose turns are these places.

        Loyal users first ask for a seat and a spare seat at one item.
        """
        cdef Py_ssize_t i
        cdef uint32_t user
        cdef Person *one
        with nogil:
            for i in range(first, stop):
                user = users[min(i + NEXT, stop - 1)]
                DP_PREFETCH(&begins[user])
                DP_PREFETCH(&lengths[user])
                DP_PREFETCH(&sizes[user])
                DP_PREFETCH(&lasts[user])
                DP_PREFETCH(&loyal_to[user])
                user, one = users[i], &self.people[i]
                one.begin, one.size, one.length = begins[user], sizes[user], lengths[user]
                one.last, one.loyal_to = lasts[user], loyal_to[user]
                one.place = one.lap = 0
                one.offers = 0 if loyal_to[user] == NO_ITEM else 1 + (self.spare > 0)

    def let_in(self, uint32_t[::1] schedule, Py_ssize_t first, Py_ssize_t stop):
        """Seat the users whose turns are schedule[first : stop], and those who stand for them.

        Returns how many users get to their last item; those items are written over these turns.
        """
        cdef Py_ssize_t i = first, at_last = first
        cdef uint32_t standing[STANDING]
        cdef uint64_t head = 0, tail = 0, key, desk
        cdef uint32_t turn
        with nogil:
            # Those who stand wait in a ring, until their part of the memory is there.
            while True:
                while i < stop and tail - head < STANDING:
                    self.wait(schedule[i], standing, &tail)
                    i += 1
                if head == tail:
                    break
                turn = standing[min(head + STANDING // 2, tail - 1) % STANDING]
                DP_PREFETCH(&self.listed[self.people[turn].begin] + self.people[turn].place)
                turn = standing[head % STANDING]
                head += 1
                if self.asks(turn, &desk, &key):
                    if self.seat(desk, key, &turn):
                        self.wait(turn, standing, &tail)
                elif self.people[turn].last != NO_ITEM:
                    schedule[at_last] = self.people[turn].last  # one at most for each turn
                    at_last += 1
        return at_last - first

    cdef inline void wait(self, uint32_t turn, uint32_t *standing, uint64_t *tail) noexcept nogil:
        """Let a user stand at the end of the ring."""
        DP_PREFETCH(&self.people[turn])
        DP_PREFETCH(&self.people[turn].offers)  # it may be on the next line
        standing[tail[0] % STANDING] = turn
        tail[0] += 1

    def seated(self, uint64_t[::1] counts):
        """Write how many users are seated at each item."""
        cdef uint64_t n
        for n in range(self.items):
            counts[n] = self.desks[n].seated + self.desks[self.items + n].seated

    cdef inline bint asks(self, uint32_t turn, uint64_t *desk, uint64_t *key) noexcept nogil:
        """Make the next requests of one user, until a desk may take it; return whether one does."""
        cdef Person *one = &self.people[turn]
        cdef const uint32_t *items = &self.listed[0] + one.begin
        cdef bint at_spare
        cdef uint32_t place = one.place
        cdef uint64_t head, first
        while one.offers:
            at_spare = self.spare and one.offers == 1
            desk[0] = one.loyal_to + at_spare * self.items
            head = (<uint64_t>self.rounds << LAP_SHIFT) | turn
            key[0] = head | (<uint64_t>(one.size + 1) << LEFT_SHIFT)
            one.offers -= 1
            if key[0] < DP_GLANCE(&self.bars[desk[0]]):
                return True
        while one.lap < self.rounds:
            head = (<uint64_t>(self.rounds - one.lap) << LAP_SHIFT) | turn
            first = self.items if one.lap == self.laps else 0
            while place < one.length:
                desk[0] = first + items[place]
                key[0] = head | (<uint64_t>(one.size - place) << LEFT_SHIFT)
                place += 1
                if key[0] < DP_GLANCE(&self.bars[desk[0]]):
                    one.place = place
                    return True
            if one.last != NO_ITEM:
                return False
            place = 0
            one.lap += 1
        return False

    cdef inline bint seat(self, uint64_t number, uint64_t key, uint32_t *turn) noexcept nogil:
        """Give a seat to a key; return whether somebody stands then, and set whose turn it is."""
        cdef bint is_spare = number >= self.items
        cdef uint32_t size = self.spare if is_spare else self.seats
        cdef uint64_t before = self.items * self.seats if is_spare else 0
        cdef uint64_t *heap = self.keys + before + (number - is_spare * self.items) * size
        cdef Desk *desk = &self.desks[number]
        cdef bint stands
        DP_LOCK(&desk.lock)
        stands = desk.seated == size
        if not stands:
            heap[desk.seated] = key
            desk.seated += 1
            if desk.seated == size:
                make_heap(heap, size)
                DP_SHOW(&self.bars[number], heap[0])
        elif key < heap[0]:
            turn[0] = <uint32_t>heap[0]
            heap[0] = key
            sift(heap, 0, size)
            DP_SHOW(&self.bars[number], heap[0])
        DP_UNLOCK(&desk.lock)
        return stands

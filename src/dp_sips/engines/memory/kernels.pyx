# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled loops of the memory engine: plain arrays in, plain arrays out.

Every loop releases the GIL, so that the engine can run one block of users per core. None of them
knows about noise or thresholds: they drop repeats, put a user's items in bounding order, and add up
integer weights.
"""

from libc.math cimport sqrt
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from dp_sips.engines.memory.mixing cimport DP_PREFETCH, DP_SCALE, SPREAD, copy_distinct, mix

cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define DP_LOWEST(x) ((uint32_t)__builtin_ctz(x))
    #else
    static uint32_t DP_LOWEST(uint32_t x) { uint32_t n = 0; for (; !(x & 1); x >>= 1) n++; return n; }
    #endif
    """
    uint32_t DP_LOWEST(uint32_t x) noexcept nogil  # the place of the lowest bit of a number above 0

cdef enum:
    AHEAD = 64  # rows whose memory is fetched ahead of their turn
    CLAIMS = 17  # an item's claim is below this


ctypedef fused Word:
    uint32_t
    uint64_t


def runs(const Word[:, ::1] values, uint32_t[::1] starts):
    """Write the first row of each run of equal values to `starts`; return how many runs there are."""
    cdef Py_ssize_t i, rows = values.shape[0]
    cdef uint32_t width = values.shape[1], found = 0
    with nogil:
        for i in range(rows):
            starts[found] = <uint32_t>i
            found += i == 0 or values[i, 0] != values[i - 1, 0] or (
                width == 2 and values[i, 1] != values[i - 1, 1]
            )
    return found


def rising(const uint32_t[::1] users, uint32_t latest):
    """Return whether no user is below the one before; before the first comes `latest`."""
    cdef Py_ssize_t j
    with nogil:
        for j in range(users.shape[0]):
            if users[j] < latest:
                break
            latest = users[j]
        else:
            j = users.shape[0]
    return j == users.shape[0]


def add_sizes(const uint32_t[::1] users, const uint32_t[::1] lengths, uint64_t[::1] sizes):
    """Add each run's length to its user's size."""
    cdef Py_ssize_t j
    with nogil:
        for j in range(users.shape[0]):
            sizes[users[j]] += lengths[j]


def regroup(
    const uint32_t[::1] items, const uint32_t[::1] users, const uint32_t[::1] lengths,
    uint64_t[::1] places, uint32_t[::1] grouped,
):
    """Copy run after run of items to where their user's items go; `places[user]` moves on.

    Without items, nothing is done.
    """
    cdef Py_ssize_t j, count = users.shape[0] if items.shape[0] else 0
    cdef uint64_t at = 0
    with nogil:
        for j in range(count):
            if j + AHEAD < count:
                DP_PREFETCH(&places[users[j + AHEAD]])
                DP_PREFETCH(&grouped[0] + places[users[j + AHEAD // 2]])
            memcpy(
                &grouped[0] + places[users[j]], &items[0] + at, lengths[j] * sizeof(uint32_t)
            )
            places[users[j]] += lengths[j]
            at += lengths[j]


def drop_repeats(
    uint32_t[::1] items, uint32_t[::1] counts, uint64_t[::1] ends, uint64_t begin,
    Py_ssize_t first, Py_ssize_t stop,
):
    """Drop the repeats among the items of each user in [first, stop), and add up their counts.

    `counts` go with the items, or are none. The items of the first of these users start at `begin`;
    what is left moves together, from there on, `ends` follows, and its end is returned. A user's
    items are looked up in a table of their own, which is small enough for the cache.
    """
    cdef Py_ssize_t user
    cdef uint64_t i = begin, at = begin, start, size, longest = 0
    cdef uint32_t bits
    cdef uint32_t *seen
    cdef bint counted = counts.shape[0] > 0
    for user in range(first, stop):
        start = ends[user - 1] if user > first else begin
        longest = max(longest, ends[user] - start)
    size = 4
    while size < 2 * longest:
        size *= 2
    seen = <uint32_t *>malloc(size * sizeof(uint32_t))
    if seen == NULL:
        raise MemoryError
    with nogil:
        for user in range(first, stop):
            size, bits = ends[user] - i, 2
            while <uint64_t>1 << bits < 2 * size:
                bits += 1
            memset(seen, 0, sizeof(uint32_t) << bits)
            if counted:
                ends[user] = add_repeats(&items[0], &counts[0], i, i + size, at, seen, bits)
            else:
                ends[user] = copy_distinct(&items[0], i, i + size, &items[0], at, seen, bits)
            i, at = i + size, ends[user]
    free(seen)
    return at


cdef inline uint64_t add_repeats(
    uint32_t *items, uint32_t *counts, uint64_t i, uint64_t end, uint64_t at, uint32_t *seen,
    uint32_t bits,
) noexcept nogil:
    """Move one user's distinct items to `at`, with the sums of their counts; return their end.

    A slot holds one more than an item's place among those that are left, or 0.
    """
    cdef uint64_t start = at, place, mask = (<uint64_t>1 << bits) - 1
    cdef uint32_t item
    while i < end:
        item = items[i]
        place = item * SPREAD >> (64 - bits)
        while seen[place] and items[start + seen[place] - 1] != item:
            place = (place + 1) & mask
        if seen[place] == 0:
            items[at], counts[at] = item, counts[i]
            at += 1
            seen[place] = <uint32_t>(at - start)
        else:
            place = start + seen[place] - 1
            counts[place] = min(<uint64_t>counts[place] + counts[i], <uint64_t>0xFFFFFFFF)
        i += 1
    return at


cdef struct Ranked:
    uint64_t rank
    uint32_t item
    uint32_t count


cdef void order_one(
    uint32_t *items, uint32_t *counts, Py_ssize_t n, uint64_t user_word, const uint64_t *item_words,
    Ranked *scratch, uint64_t *ranks, uint32_t *places,
) noexcept nogil:
    """Sort one user's items by rank. Ranks are uniform, so n buckets hold about one item each."""
    cdef Py_ssize_t i, j
    cdef uint64_t rank
    cdef Ranked one
    for i in range(n + 1):
        places[i] = 0
    for i in range(n):
        if i + AHEAD < n:
            DP_PREFETCH(&item_words[items[i + AHEAD]])
        ranks[i] = mix(user_word ^ item_words[items[i]])
        places[DP_SCALE(ranks[i], n) + 1] += 1
    for i in range(n):
        places[i + 1] += places[i]
    for i in range(n):
        rank = ranks[i]
        j = DP_SCALE(rank, n)
        scratch[places[j]].rank = rank
        scratch[places[j]].item = items[i]
        if counts != NULL:
            scratch[places[j]].count = counts[i]
        places[j] += 1
    for i in range(1, n):
        one = scratch[i]
        j = i
        while j > 0 and scratch[j - 1].rank > one.rank:
            scratch[j] = scratch[j - 1]
            j -= 1
        scratch[j] = one
    for i in range(n):
        items[i] = scratch[i].item
        if counts != NULL:
            counts[i] = scratch[i].count


def order_items(
    uint32_t[::1] items, uint32_t[::1] counts, const uint64_t[::1] ends,
    const uint64_t[::1] user_words, const uint64_t[::1] item_words, uint64_t max_items,
    Py_ssize_t first, Py_ssize_t stop,
):
    """Put the items of each user in [first, stop) with more than `max_items` in bounding order.

    `counts` go with their items, or are none.
    """
    cdef Py_ssize_t user
    cdef uint64_t start, longest = 0
    cdef bint counted = counts.shape[0] > 0
    cdef Ranked *scratch
    cdef uint64_t *ranks
    cdef uint32_t *places
    for user in range(first, stop):
        start = ends[user - 1] if user else 0
        longest = max(longest, ends[user] - start)
    if longest <= max_items:
        return
    scratch = <Ranked *>malloc(longest * sizeof(Ranked))
    ranks = <uint64_t *>malloc(longest * sizeof(uint64_t))
    places = <uint32_t *>malloc((longest + 1) * sizeof(uint32_t))
    if scratch == NULL or ranks == NULL or places == NULL:
        free(scratch)
        free(ranks)
        free(places)
        raise MemoryError
    with nogil:
        for user in range(first, stop):
            start = ends[user - 1] if user else 0
            if ends[user] - start > max_items:
                order_one(
                    &items[start], &counts[start] if counted else NULL, ends[user] - start,
                    user_words[user], &item_words[0], scratch, ranks, places,
                )
    free(scratch)
    free(ranks)
    free(places)


def cut_items(
    uint32_t[::1] items, const uint64_t[::1] ends, const uint64_t[::1] new_ends, Py_ssize_t first,
    Py_ssize_t stop,
):
    """Move the first items of each user together, as many as `new_ends` leaves room for.

    Users before `first` have been cut already.
    """
    cdef Py_ssize_t user
    cdef uint64_t start = ends[first - 1] if first else 0
    cdef uint64_t new_start = new_ends[first - 1] if first else 0
    with nogil:
        for user in range(first, stop):
            if new_start != start:
                memmove(
                    &items[new_start], &items[start],
                    (new_ends[user] - new_start) * sizeof(uint32_t),
                )
            start = ends[user]
            new_start = new_ends[user]


def add_weights(
    const uint32_t[::1] items, const uint64_t[::1] ends, const uint8_t[::1] removed,
    const uint64_t[::1] weight_of_count, uint64_t[::1] weights, Py_ssize_t first, Py_ssize_t stop,
):
    """Let each user in [first, stop) add its weight to its first items that are still in its set.

    `removed` has one bit for each item, lowest bit first; `weight_of_count[k]` is what each of k
    items gets, and its length less one is max_items.
    """
    cdef Py_ssize_t user, i, begin, end
    cdef uint64_t weight
    cdef uint32_t max_items = weight_of_count.shape[0] - 1, count, item
    cdef uint32_t *chosen = <uint32_t *>malloc((max_items + 1) * sizeof(uint32_t))
    if chosen == NULL:
        raise MemoryError
    with nogil:
        for user in range(first, stop):
            begin = ends[user - 1] if user else 0
            end = ends[user]
            count = 0
            for i in range(begin, end):
                item = items[i]
                chosen[count] = item
                if not (removed[item >> 3] >> (item & 7)) & 1:
                    DP_PREFETCH(&weights[item])
                    count += 1
                    if count == max_items:
                        break
            weight = weight_of_count[count]
            for i in range(count):
                weights[chosen[i]] += weight
    free(chosen)


def add_claimed_weights(
    uint32_t[::1] items, uint64_t[::1] ends, const uint8_t[::1] claims, uint32_t step_bits,
    uint64_t[::1] weights, uint64_t begin, Py_ssize_t first, Py_ssize_t stop,
):
    """Let each user in [first, stop) add to its items' weights what their claims say.

    The items of the first of these users start at `begin`. Items without a claim leave the sets:
    what is left moves together, from `begin` on, `ends` follows, and its end is returned.
    """
    cdef Py_ssize_t user, i = begin, j, start, at = begin, rows = items.shape[0]
    cdef uint64_t end, total
    cdef uint64_t given[CLAIMS]
    cdef uint32_t item, present, claim
    with nogil:
        for user in range(first, stop):
            end = ends[user]
            start, total, present = at, 0, 0
            while <uint64_t>i < end:
                if i + AHEAD < rows:
                    DP_PREFETCH(&claims[items[i + AHEAD]])
                    DP_PREFETCH(&weights[items[i + AHEAD]])
                item = items[i]
                claim = claims[item]
                items[at] = item
                at += claim != 0
                total += claim
                present |= <uint32_t>1 << claim
                i += 1
            ends[user] = at
            present &= ~<uint32_t>1
            while present:
                claim = DP_LOWEST(present)
                present &= present - 1
                # A double's square root of an integer below 2⁵², rounded down, is exact.
                given[claim] = <uint64_t>sqrt(
                    <double>((<uint64_t>claim << 2 * step_bits) // total)
                )
            for j in range(start, at):
                weights[items[j]] += given[claims[items[j]]]
    return at

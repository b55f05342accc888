# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of plain delimited text, taken apart in one compiled pass."""

from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy, memset

cdef uint8_t QUOTE = b'"'


cdef struct Column:
    Py_ssize_t field
    uint8_t *data
    int32_t *ends
    uint8_t *valid
    int32_t at


def lines(const uint8_t[::1] text):
    """Return how many lines have ended."""
    cdef Py_ssize_t i, count = 0
    with nogil:
        for i in range(text.shape[0]):
            count += text[i] == b"\n"
    return count


def is_ascii(const uint8_t[::1] text):
    """Whether no byte is above 127."""
    cdef Py_ssize_t i
    cdef uint8_t seen = 0
    with nogil:
        for i in range(text.shape[0]):
            seen |= text[i]
    return seen < 128


cdef inline const uint8_t *end_of(
    const uint8_t *begin, const uint8_t *stop, uint8_t delimiter, bint quotes, bint *quoted
) noexcept nogil:
    """Return where a field ends, and say whether it is in quotes; NULL if it is not plain."""
    cdef const uint8_t *end
    quoted[0] = quotes and begin < stop and begin[0] == QUOTE
    if quoted[0]:
        end = <const uint8_t *>memchr(begin + 1, QUOTE, stop - begin - 1)
        if end == NULL or (end + 1 < stop and end[1] != delimiter):
            return NULL
        return end + 1
    end = <const uint8_t *>memchr(begin, delimiter, stop - begin)
    if end == NULL:
        end = stop
    if quotes and memchr(begin, QUOTE, end - begin) != NULL:
        return NULL
    return end


cdef bint split_row(
    const uint8_t *row, const uint8_t *stop, uint8_t delimiter, bint quotes, Py_ssize_t fields,
    Column *columns, Py_ssize_t wanted, Py_ssize_t number,
) noexcept nogil:
    """Append the wanted fields of a row; return whether it is plain."""
    cdef Py_ssize_t field, next_ = 0
    cdef const uint8_t *begin = row
    cdef const uint8_t *end
    cdef bint quoted
    cdef Column *column
    for field in range(fields):
        end = end_of(begin, stop, delimiter, quotes, &quoted)
        if end == NULL or (end == stop) != (field == fields - 1):
            return False
        if next_ < wanted and columns[next_].field == field:
            column = &columns[next_]
            memcpy(column.data + column.at, begin + quoted, end - begin - 2 * quoted)
            column.at += <int32_t>(end - begin - 2 * quoted)
            if end > begin:
                column.valid[number >> 3] |= <uint8_t>(1 << (number & 7))
            next_ += 1
        begin = end + 1
    return True


cdef Py_ssize_t split_rows(
    const uint8_t *text, Py_ssize_t *size, uint8_t delimiter, Py_ssize_t fields, Column *columns,
    Py_ssize_t wanted, Py_ssize_t most,
) noexcept nogil:
    """Append rows, as many as are plain; return how many, and set `size` to the bytes they take."""
    cdef const uint8_t *row = text
    cdef const uint8_t *end = text + size[0]
    cdef const uint8_t *stop
    cdef const uint8_t *next_row
    cdef Py_ssize_t c, rows = 0
    cdef bint quotes = memchr(text, QUOTE, size[0]) != NULL
    cdef bint returns = memchr(text, b"\r", size[0]) != NULL
    while rows < most:
        stop = <const uint8_t *>memchr(row, b"\n", end - row)
        if stop == NULL:
            break
        next_row = stop + 1
        if returns:
            if stop > row and (stop - 1)[0] == b"\r":
                stop -= 1
            if memchr(row, b"\r", stop - row) != NULL:
                break
        if stop > row:
            if not split_row(row, stop, delimiter, quotes, fields, columns, wanted, rows):
                break
            rows += 1
            for c in range(wanted):
                columns[c].ends[rows] = columns[c].at
        row = next_row
    size[0] = row - text
    return rows


def split(
    const uint8_t[::1] text, uint8_t delimiter, Py_ssize_t fields, wanted, datas, ends, valids
):
    """Take rows apart, up to the end of the last one or to the first that is not plain.

    A plain row has this many fields, quotes only around whole fields, and a carriage return at most
    at its end; lines do not end inside of quotes. Empty lines are passed over. Field number
    wanted[c] of each row, in rising order, is appended to datas[c], with room for all of the text;
    ends[c] begins with 0, and the end of each field follows; valids[c] gets a bit for each field
    that is not empty, or is in quotes. Returns the number of rows, and of bytes that these take.
    """
    cdef Py_ssize_t c, rows = 0, count = len(wanted), size = text.shape[0], most = size
    cdef uint8_t[::1] data, valid
    cdef int32_t[::1] own
    cdef Column *columns
    columns = <Column *>malloc((count + 1) * sizeof(Column))
    if columns == NULL:
        raise MemoryError
    try:
        for c in range(count):
            data, own, valid = datas[c], ends[c], valids[c]
            most = min(most, own.shape[0] - 1)
            if data.shape[0] < size or own.shape[0] < 2 or 8 * valid.shape[0] < own.shape[0]:
                raise ValueError("too little room")
            columns[c].field, columns[c].at = wanted[c], 0
            columns[c].data, columns[c].ends, columns[c].valid = &data[0], &own[0], &valid[0]
            own[0] = 0
            memset(&valid[0], 0, valid.shape[0])
        if size:
            with nogil:
                rows = split_rows(&text[0], &size, delimiter, fields, columns, count, most)
    finally:
        free(columns)
    return rows, size

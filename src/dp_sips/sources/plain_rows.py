"""The plain rows with which delimited text begins: most files have no others.

What is left is for Arrow to read. So quotes and line ends inside of quotes, rows of another length
and bytes that are not UTF-8 mean what they mean to Arrow; plain rows take a fraction of the time.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dp_sips.sources import splitting

_MARK: Final = b"\xef\xbb\xbf"
"""What may come before the first byte of UTF-8."""
_NEWLINE: Final = ord("\n")

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class PlainRows:
    """Takes plain rows apart.

    Attributes:
        header: The names of all columns.
        wanted: The columns to read.
        delimiter: What stands between fields.
        block: How many bytes to read at a time.
    """

    header: Sequence[str]
    wanted: Sequence[str]
    delimiter: str
    block: int

    def read(
        self, stream: Any, *, has_header: bool
    ) -> Generator[pa.RecordBatch, None, bytes | None]:
        """Yield the plain rows at the beginning of a stream, an empty field as null.

        Returns what was read beyond them, after the header; the rest is still in the stream. None
        if there is nothing left.
        """
        room = np.empty(self.block + 1, dtype=np.uint8)  # one more, to end the last line
        filled = _fill(stream, room[:-1], 0)
        begin = self._first_row(room[:filled]) if has_header else _after_mark(room[:filled])
        if begin is None:
            return bytes(room[:filled])
        # Arrow drops a mark: this one, and not what a row may begin with.
        head = bytes(room[:begin]) if has_header else _MARK
        data = [np.empty(self.block + 1, dtype=np.uint8) for _ in self.wanted]
        while True:
            is_last = filled < self.block
            if is_last and filled > begin and room[filled - 1] != _NEWLINE:
                room[filled] = _NEWLINE
                filled += 1
            text = room[begin:filled]
            batch, taken = self._split(text, data)
            if batch.num_rows:
                yield batch
            rest = text[taken:].copy()
            if is_last and not len(rest):
                return None
            # An unfinished row goes on in the next block. Any other row that is left is not plain.
            if is_last or not taken or splitting.lines(rest):
                return head + bytes(rest)
            room[: len(rest)] = rest
            begin, filled = 0, _fill(stream, room[:-1], len(rest))

    def _first_row(self, text: Bytes) -> int | None:
        """Return where the first row begins, if the header is plain."""
        start = _after_mark(text)
        line, end, _ = bytes(text[start:]).partition(b"\n")
        names = [name.encode() for name in self.header]
        fields = line.removesuffix(b"\r").split(self.delimiter.encode())
        is_plain = any(names) and end and [_unquoted(field) for field in fields] == names
        return start + len(line) + 1 if is_plain and b'"' not in b"".join(names) else None

    def _split(self, text: Bytes, data: list[Bytes]) -> tuple[pa.RecordBatch, int]:
        """Return the plain rows at the beginning of the text, and how many bytes they take.

        `data` is room for the bytes of each column, as many as the text has.
        """
        most = splitting.lines(text)
        fields = sorted(map(self.header.index, self.wanted))
        ends = [np.empty(most + 2, dtype=np.int32) for _ in fields]
        valid = [np.empty((most + 9) // 8, dtype=np.uint8) for _ in fields]
        delimiter, count = ord(self.delimiter), len(self.header)
        rows, taken = splitting.split(text, delimiter, count, fields, data, ends, valid)
        if not _is_utf8(text[:taken]):
            rows = taken = 0
        columns = {
            self.header[field]: _strings(rows, own_ends, own_data, own_valid)
            for field, own_ends, own_data, own_valid in zip(fields, ends, data, valid, strict=True)
        }
        arrays = [columns[name] for name in self.wanted]
        return pa.record_batch(arrays, names=list(self.wanted)), taken


def _strings(rows: int, ends: NDArray[np.int32], data: Bytes, valid: Bytes) -> pa.Array:
    """Return text of these bytes, which are copied: their room is used again."""
    own = pa.py_buffer(data[: ends[rows]].tobytes())
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), own, pa.py_buffer(valid))


def _fill(stream: Any, room: Bytes, filled: int) -> int:
    """Read until there is no more room, or no more to read; return how much is filled."""
    while filled < len(room) and (count := stream.readinto(room[filled:].data)):
        filled += count
    return filled


def _unquoted(field: bytes) -> bytes:
    return field[1:-1] if field[:1] == field[1:][-1:] == b'"' else field


def _after_mark(text: Bytes) -> int:
    return len(_MARK) if bytes(text[: len(_MARK)]) == _MARK else 0


def _is_utf8(text: Bytes) -> bool:
    if splitting.is_ascii(text):
        return True
    ends = np.array([0, len(text)], dtype=np.int32)
    try:
        pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

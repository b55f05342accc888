"""What a file is by its first bytes, where it cannot be read as what its name says.

Public: that a file is of another kind. Sensitive: the bytes, which may be of somebody's row: no
message shows one.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa

from dp_sips.errors import InputError
from dp_sips.sources.base import reading
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.finding import COMPRESSED, KINDS

_LENGTH: Final = 1024
_BY: Final = "by its first bytes"
_BINARY: Final = ("parquet", "ipc")
_PACKED: Final = {
    ".gz": rb"\x1f\x8b",
    ".zst": rb"\x28\xb5\x2f\xfd",
    ".bz2": rb"BZh[1-9]1AY&SY",
    ".lz4": rb"\x04\x22\x4d\x18",
}
_KINDS: Final = {
    rb"PAR1[\0-\x08\x0e-\x1f]": ("a Parquet file", ".parquet"),
    rb"ARROW1\0\0|\xff{4}": ("an Arrow file", ".arrow"),
    rb'(\xef\xbb\xbf)?\s*\{\s*"': ("a file of JSON lines", ".jsonl"),
}
_ARRAY: Final = rb"(\xef\xbb\xbf)?\s*\[\s*\{"
_WORKBOOK: Final = rb"PK\x03\x04|\xd0\xcf\x11\xe0"
_TEXT: Final = rb"(?!PAR1|ARROW1)[\t\n\r\x20-\xff]+\Z"


@contextmanager
def explaining(file: DataFile, kind: str | None, *, first_is_row: bool = False) -> Iterator[None]:
    """Read a file as some kind; if that fails, say what it is where its first bytes tell.

    Where they are those of a row that may begin as it likes, they are not looked at.
    """
    try:
        with reading(str(file)):
            yield
    except InputError:
        told = None
        with suppress(pa.ArrowException, OSError):
            told = _told(file, kind, first_is_row=first_is_row)
        if told is None:
            raise
        raise InputError(f"{file} {told}") from None


def _told(file: DataFile, kind: str | None, *, first_is_row: bool) -> str | None:
    """Say what a file is that is not of this kind, and what to do; nothing if it may be."""
    start, named = _start(file.open), _packing(file)
    packing = next((suffix for suffix, magic in _PACKED.items() if re.match(magic, start)), None)
    if first_is_row and (named is None or packing == named):
        return None
    if named is not None and packing == named:
        return _other_kind(file, kind, _start(file.stream), "unpack it, and ")
    if packing is not None:
        name = f"name it {packing}, not {named}" if named else f"add {packing} to its name"
        can_stay = packing in COMPRESSED and kind not in _BINARY
        return f"is packed {_BY}: unpack it" + (f", or {name}" if can_stay else "")
    if first_is_row or (named is not None and re.match(_TEXT, start)):
        return f"is not packed {_BY}: leave {named} out of its name"
    return _other_kind(file, kind, start)


def _other_kind(file: DataFile, kind: str | None, start: bytes, before: str = "") -> str | None:
    if re.match(_WORKBOOK, start):
        return f"is a workbook or an archive {_BY}: save its table as CSV"
    if re.match(_ARRAY, start):
        return f"is a JSON array {_BY}: write one object per line, as jq -c '.[]' does"
    for magic, (name, suffix) in _KINDS.items():
        if re.match(magic, start):
            fix = f"{before}rename it to {suffix}"
            if file.kind == KINDS[suffix]:  # and it was read as delimited text
                fix = "leave out dp_sips.CsvFiles (--delimiter, --no-header and --encoding)"
            return None if KINDS[suffix] == kind else f"is {name} {_BY}: {fix}"
    if kind in _BINARY and re.match(_TEXT, start):
        return f"is text {_BY}: rename it to .csv, .tsv or .jsonl"
    return None


def _packing(file: DataFile) -> str | None:
    """Return how a file is packed, by its name."""
    suffix = file.path.suffix.lower()
    return suffix if suffix in _PACKED else None


def _start(opener: Callable[[], Any]) -> bytes:
    with opener() as stream:
        return bytes(stream.read(_LENGTH))

"""CSV files that are not as usual: another delimiter, no header, another encoding."""

import codecs
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import PurePath
from typing import Final

from dp_sips.errors import UsageError

_UTF8: Final = "utf-8"


@dataclass(frozen=True)
class Dialect:
    """How delimited text is written."""

    _: KW_ONLY
    delimiter: str | None = None
    header: bool = True
    encoding: str = _UTF8

    def __post_init__(self) -> None:
        if self.delimiter is not None and not _is_delimiter(self.delimiter):
            raise UsageError(
                "delimiter must be one ASCII character, neither a quote nor the end of a line, "
                f"got {self.delimiter!r}"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError):
            raise UsageError(
                f'encoding must be one that Python knows, such as "latin-1", got {self.encoding!r}'
            ) from None

    @property
    def codec(self) -> str:
        """The one name of the encoding: latin-1 and L1 are both iso8859-1."""
        return codecs.lookup(self.encoding).name

    @property
    def is_utf8(self) -> bool:
        """Whether Arrow can read the bytes as they are."""
        return self.codec == _UTF8

    def separator(self, path: PurePath) -> str:
        """Return what stands between the fields of this file."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:]) else ","

    def names(self, count: int) -> list[str]:
        """Return the names of columns that have none."""
        return [str(number) for number in range(1, count + 1)]


@dataclass(frozen=True)
class CsvFiles(Dialect):
    """CSV files that are not as usual; given as data, where a path would be.

    `CsvFiles("visits.txt", delimiter="|", header=False, encoding="latin-1")`

    Attributes:
        paths: A path, glob or folder, or several; files that are named may have any suffix.
        delimiter: One character between fields; by default a tab in .tsv files, else a comma.
        header: Whether the first row has the names of the columns. Without, they are "1", "2", ….
        encoding: Of the text, by the name that Python has for it.
    """

    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

    @property
    def places(self) -> list[str | os.PathLike[str]]:
        """The paths, globs and folders."""
        return [self.paths] if isinstance(self.paths, (str, os.PathLike)) else list(self.paths)


def _is_delimiter(text: object) -> bool:
    return isinstance(text, str) and len(text) == 1 and text.isascii() and text not in '"\r\n\0'

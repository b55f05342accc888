"""A data file, on this machine or elsewhere: what it is called, and how its bytes are read."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final

from pyarrow.fs import LocalFileSystem

from dp_sips.sources.addresses import is_remote
from dp_sips.sources.columns import Columns
from dp_sips.sources.finding import NUMBER, find_any_files, find_files, kind_of
from dp_sips.sources.path_columns import raw_columns, without_values

_PACKED: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


@dataclass(frozen=True, eq=False)
class DataFile:
    """A file in one of Arrow's file systems.

    Attributes:
        place: Where it is in the file system.
        path: Its path, whose suffix tells its kind.
        label: What messages call it: without credentials, and without the values in its path.
        number: Which of the files it is, by name, where the label does not tell.
        in_path: The columns in its path, with their values as they are written there.
        filesystem: That of this machine, or another.
    """

    place: str
    path: PurePath
    label: str
    in_path: Mapping[str, str] = field(default_factory=dict)
    filesystem: Any = field(default_factory=LocalFileSystem)
    number: str = ""

    @classmethod
    def local(cls, path: Path) -> "DataFile":
        """Return a file of this machine."""
        columns = raw_columns(path.absolute().parts[:-1])
        return cls(str(path), path, without_values(str(path)), columns)

    def __str__(self) -> str:
        return self.label + self.number

    @property
    def kind(self) -> str | None:
        """The kind of file that the suffix tells."""
        return kind_of(self.path)

    @property
    def is_local(self) -> bool:
        """Whether the file is on this machine."""
        return isinstance(self.filesystem, LocalFileSystem)

    def open(self) -> Any:
        """Open the file as it is; one can seek in it."""
        return self.filesystem.open_input_file(self.place)

    def stream(self) -> Any:
        """Open the file from its start, unpacked."""
        packed = _PACKED.get(self.path.suffix.lower())
        return self.filesystem.open_input_stream(self.place, compression=packed)

    def pick(self, columns: Columns, known: Sequence[str]) -> list[str]:
        """Return the needed columns that the file itself has; the others are in its path.

        If all of them are there, this is any one column: it has as many rows as the others.
        """
        names = columns.pick([*known, *(n for n in self.in_path if n not in known)], str(self))
        return [name for name in names if name in known] or list(known[:1])


def find_data_files(
    places: Iterable[str | os.PathLike[str]], *, any_suffix: bool = False
) -> list[DataFile]:
    """Return the data files of paths, globs, folders and addresses, each once, by name."""
    given = list(places)
    remote = [str(place) for place in given if is_remote(place)]
    local = [place for place in given if not is_remote(place)]
    find: Callable[..., list[Path]] = find_any_files if any_suffix else find_files
    files = [DataFile.local(path) for path in find(local)] if local or not remote else []
    if remote:
        from dp_sips.sources.remote import find_remote_files

        files += find_remote_files(remote, any_suffix=any_suffix)
    return list(_numbered(files))


def _numbered(files: list[DataFile]) -> Iterator[DataFile]:
    """Give files a number whose labels are those of others as well."""
    times = Counter(file.label for file in files)
    for place, file in enumerate(files, 1):
        alone = times[file.label] == 1
        yield file if alone else replace(file, number=f"{NUMBER}{place} of {len(files)})")

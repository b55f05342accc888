"""Files of other file systems: S3, Google Cloud, Azure and HDFS by Arrow, all others by fsspec."""

import glob
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, FSSpecHandler, PyFileSystem

from dp_sips.errors import InputError
from dp_sips.sources.addresses import WEB, shown_address, split_address
from dp_sips.sources.data_files import DataFile
from dp_sips.sources.finding import KINDS, is_hidden, kind_of, no_kind
from dp_sips.sources.path_columns import raw_columns, without_values
from dp_sips.sources.reasons import PlainError, reason

_BY_ARROW: Final = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "hdfs": "hdfs",
    "viewfs": "viewfs",
}
"""What Arrow calls the schemes that it knows; some are Spark's names."""
_RETRY_LIMIT: Final = "retry_limit_seconds"
_PATIENCE: Final = 30
"""For how many seconds Google's store is tried again, unless the address says; pauses between tries
grow, and can double that. A try that is connected and gets no answer lasts two minutes by itself:
that limit is Google's library's own."""
_UNKNOWN_OPTION: Final = re.compile(r"Unexpected query parameter in [\w ]+ URI: '([\w.-]+)'")
_FAILED: Final = "there is no connection, no permission or no such store"
_INSTALL: Final = "pip install 'dp-sips[remote]'"


@dataclass(frozen=True)
class _Place:
    """An address that was asked for: its file system, the path there, and its name in messages."""

    filesystem: Any
    path: str
    label: str

    def file(self, path: str) -> DataFile:
        """Return a file at or below this place."""
        label = without_values(self.label + path.removeprefix(self.path))
        pure = PurePosixPath(unquote(path.partition("?")[0]) if self.is_web else path)
        return DataFile(path, pure, label, raw_columns(pure.parts[:-1]), self.filesystem)

    @property
    def is_web(self) -> bool:
        """Whether the path is an address itself."""
        return _is_web(self.path)

    def parent(self, count: int) -> "_Place":
        """Return the place that many folders above."""
        path, label = (text.rstrip("/").rsplit("/", count)[0] for text in (self.path, self.label))
        return _Place(self.filesystem, path or "/", label)

    def found(self) -> Any:
        """Say what is there: a file, a folder or nothing."""
        with _asking(self.label):
            return self.filesystem.get_file_info(self.path).type

    def files(self) -> list[str]:
        """Return the paths of all files below, at any depth."""
        with _asking(self.label):
            selector = FileSelector(self.path, recursive=True, allow_not_found=True)
            found = self.filesystem.get_file_info(selector)
        return [info.path for info in found if info.type == FileType.File]


def find_remote_files(addresses: Iterable[str], *, any_suffix: bool) -> list[DataFile]:
    """Return the data files of addresses, folders and globs, each once, by name."""
    found = [file for address in addresses for file in _find(address, any_suffix=any_suffix)]
    return [file for _, file in sorted({file.label + file.place: file for file in found}.items())]


def _find(address: str, *, any_suffix: bool) -> list[DataFile]:
    place = _place(address)
    kind = place.found()
    if kind == FileType.File:
        return [_checked(place.file(place.path), any_suffix=any_suffix)]
    if kind == FileType.Directory:
        return _some(place, (), f"no data files in the folder {place.label}")
    if place.is_web:
        raise InputError(f"no such file, or no connection: {place.label}")
    if not glob.has_magic(place.path):
        raise InputError(f"no such file: {place.label}")
    parts = place.path.split("/")
    first = next(n for n, part in enumerate(parts) if glob.has_magic(part))
    pattern = tuple(part for part in parts[first:] if part)
    return _some(place.parent(len(parts) - first), pattern, f"no data file matches {place.label}")


def _checked(file: DataFile, *, any_suffix: bool) -> DataFile:
    if file.kind is None and not any_suffix:
        raise InputError(no_kind(str(file)))
    return file


def _some(place: _Place, pattern: tuple[str, ...], otherwise: str) -> list[DataFile]:
    """Return the data files below a place that match a pattern, or are in a folder that does."""
    base = place.path.rstrip("/") + "/"
    files = [
        place.file(path)
        for path in place.files()
        if kind_of(PurePosixPath(path)) and _matches(path.removeprefix(base).split("/"), pattern)
    ]
    if not files:
        raise InputError(f"{otherwise}; known suffixes: {' '.join(KINDS)}")
    return files


def _matches(parts: list[str], pattern: tuple[str, ...]) -> bool:
    """Whether a path, or a folder that it is in, matches; no wildcard finds a hidden name."""
    if not pattern:
        return not any(map(is_hidden, parts))
    if not parts:
        return False
    first, *rest = pattern
    if first == "**" and _matches(parts, tuple(rest)):
        return True
    if is_hidden(parts[0]) and first[0] != parts[0][0]:
        return False
    if first == "**":
        return _matches(parts[1:], pattern)
    return fnmatchcase(parts[0], first) and _matches(parts[1:], tuple(rest))


def _place(address: str) -> _Place:
    """Find the file system of an address."""
    label = shown_address(address).rstrip("/")
    scheme, authority, path, options = split_address(address)
    if scheme in _BY_ARROW:
        with _asking(label):
            known = _BY_ARROW[scheme]
            opened = _by_arrow(f"{known}://{authority}/{_bounded(known, options)}", label)
        if opened is not None:
            filesystem, root = opened
            return _Place(filesystem, f"{root.rstrip('/')}{path}".rstrip("/") or "/", label)
    with _asking(label):
        return _Place(*_by_fsspec(address, scheme, label), label)


def _bounded(scheme: str, options: str) -> str:
    """Return the options of an address, with a limit on retries where Arrow's own is many minutes.

    No signal ends that wait: Python's handlers run when Arrow returns.
    """
    if scheme != "gs" or re.search(rf"[?&]{_RETRY_LIMIT}=", options):
        return options
    return f"?{_RETRY_LIMIT}={_PATIENCE}{options.replace('?', '&', 1)}"


def _by_arrow(root: str, label: str) -> tuple[Any, str] | None:
    """Return Arrow's file system, or nothing where Arrow was built without it."""
    try:
        filesystem, path = FileSystem.from_uri(root)
    except pa.ArrowNotImplementedError:
        return None
    except pa.ArrowInvalid as error:
        raise InputError(f"{label} {_misunderstood(error)}") from None
    return filesystem, path


def _misunderstood(error: pa.ArrowInvalid) -> str:
    """Say what is wrong with an address: of an option, the name and never the value."""
    if unknown := _UNKNOWN_OPTION.fullmatch(str(error)):
        return (
            f"has an option that Arrow does not know, {unknown[1]!r}: correct its name after the "
            "question mark, or leave it out"
        )
    return (
        "is not an address that Arrow understands: check the options after the question mark, and "
        "write a slash in credentials as %2F"
    )


def _by_fsspec(address: str, scheme: str, label: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise InputError(f"{label} cannot be read without fsspec: {_INSTALL}") from None
    if scheme not in fsspec.available_protocols():
        known = ", ".join(sorted({*_BY_ARROW, *WEB, "file"}))
        raise InputError(
            f"{label} cannot be read: nothing installed knows {scheme}://; there are {known}, and "
            "what fsspec's packages add"
        )
    try:
        filesystem, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise InputError(f"{label} cannot be read: {_needed(scheme, error)}") from None
    return PyFileSystem(_Handler(filesystem)), path


def _needed(scheme: str, error: ImportError) -> str:
    """Say what to install: in fsspec's own words, which are fixed for each scheme."""
    from fsspec.registry import known_implementations

    if scheme in WEB:
        return f"it needs aiohttp: {_INSTALL}"
    known = known_implementations.get(scheme, {}).get("err")
    return str(known) if known else f"it needs {error.name}: pip install {error.name}"


def _is_web(path: str) -> bool:
    return path.startswith(tuple(f"{scheme}://" for scheme in WEB))


class _Handler(FSSpecHandler):  # type: ignore[misc]
    """Files by fsspec, whose errors say no more than what went wrong."""

    def open_input_file(self, path: str) -> pa.PythonFile:
        """Open a file to seek in."""
        return self._open(path)

    def open_input_stream(self, path: str) -> pa.PythonFile:
        """Open a file to read from its start, which every web server can send."""
        return self._open(path, **({"block_size": 0} if _is_web(path) else {}))

    def _open(self, path: str, **options: Any) -> pa.PythonFile:
        with _in_plain_words():
            return pa.PythonFile(_Bytes(self.fs.open(path, mode="rb", **options)), mode="r")


class _Bytes:
    """An open file of fsspec: what Arrow asks of one."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return that many bytes, or all that are left."""
        with _in_plain_words():
            found: bytes = self._file.read(size)
            while found and len(found) < size and (more := self._file.read(size - len(found))):
                found += more
        return found

    def seek(self, place: int, whence: int = 0) -> int:
        """Go to a place."""
        with _in_plain_words():
            return int(self._file.seek(place, whence))

    def tell(self) -> int:
        """Return the place."""
        with _in_plain_words():
            return int(self._file.tell())

    def close(self) -> None:
        """Close the file."""
        with _in_plain_words():
            self._file.close()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return bool(self._file.closed)


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Turn whatever a library raises into an error of the file system that says why."""
    try:
        yield
    except MemoryError:
        raise
    except ValueError:
        # What fsspec raises where a server sends the whole file and not the part that is asked for.
        raise PlainError("the server does not send parts of files: download it first") from None
    except Exception as error:  # noqa: BLE001 (each library of fsspec has its own)
        raise PlainError(reason(error, _FAILED)) from None


@contextmanager
def _asking(label: str) -> Iterator[None]:
    """Turn whatever a library raises into an `InputError` without its words, which may tell all."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 (each library of fsspec has its own)
        raise InputError(f"{label} cannot be read: {reason(error, _FAILED)}") from None

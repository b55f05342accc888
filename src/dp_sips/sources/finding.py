"""From paths, globs and folders to a sorted list of data files."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath
from typing import Final, NoReturn

from dp_sips.errors import InputError, UsageError, did_you_mean
from dp_sips.sources.addresses import is_remote, local_path, shown_address

COMPRESSED = (".gz", ".bz2", ".zst")
KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}
NUMBER: Final = " (file "
"""Begins what tells a file from others of the same label."""
_COMPRESSIBLE = {"csv", "tsv", "json"}


_LONGEST_PATH: Final = 4096


def kind_of(path: PurePath) -> str | None:
    """Return the kind of file that the suffix tells, or `None`."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in COMPRESSED:
        kind = KINDS.get(suffixes[0]) if len(suffixes) > 1 else None
        return kind if kind in _COMPRESSIBLE else None
    return KINDS.get(suffixes[-1]) if suffixes else None


def is_hidden(name: str) -> bool:
    """Whether a name is some writer's own: it begins with a dot or, if no column, an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def find_files(places: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return every data file that the paths, globs and folders name, each once, by name."""
    return _find(places, _known)


def find_any_files(places: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return files of any suffix where they are named one by one, else data files."""
    return _find(places, lambda path: path)


def _find(places: Iterable[str | os.PathLike[str]], named: Callable[[Path], Path]) -> list[Path]:
    try:
        found = {path for place in places for path in _expand(os.fspath(place), named)}
        dangling = next((path for path in found if not path.exists()), None)
    except OSError as error:
        _raise(error)
    if not found:
        raise UsageError("the list of paths is empty: name at least one file")
    if dangling is not None:
        raise InputError(_missing(dangling))
    return sorted(found, key=str)


def _expand(place: str, named: Callable[[Path], Path]) -> Iterator[Path]:
    if not isinstance(place, str):
        raise UsageError(f"a path must be text, got {place!r}")
    if not place:
        raise UsageError("a path is empty: name a file, or '.' for this folder")
    if is_remote(place):
        raise InputError(f"{shown_address(place)} is not on this machine: copy it here first")
    path = _at_home(Path(local_path(place)))
    if path.is_dir():
        yield from _in_folder(path)
    elif path.exists():
        yield named(path)
    elif glob.has_magic(place):
        yield from _matching(str(path))
    else:
        raise InputError(_missing(path))


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise InputError(f"no such file: {path} (there is no user of that name)") from error


def _known(path: Path) -> Path:
    if kind_of(path) is None:
        raise InputError(no_kind(str(path)))
    return path


def no_kind(label: str) -> str:
    """Say which suffixes there are."""
    return (
        f"{label} has no suffix that tells its kind; known: {' '.join(KINDS)}, and CSV, TSV and "
        f"JSON lines with {' '.join(COMPRESSED)}; delimited text may have any suffix: name "
        "its delimiter, as delimiter=',' of dp_sips.CsvFiles (--delimiter ','), or ';', or '\\t'"
    )


def _in_folder(folder: Path) -> list[Path]:
    files = list(_data_files(folder))
    if not files:
        raise InputError(f"no data files in the folder {folder}; known suffixes: {' '.join(KINDS)}")
    return files


def _data_files(folder: Path) -> Iterator[Path]:
    """Walk a folder, without what is some writer's own."""
    for root, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not is_hidden(name)]
        paths = (Path(root, name) for name in names if not is_hidden(name))
        yield from (path for path in paths if kind_of(path))


def _raise(error: OSError) -> NoReturn:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error


def _matching(pattern: str) -> list[Path]:
    # The glob module, not Path.glob: it takes absolute patterns and leaves hidden files out.
    found = [Path(match) for match in glob.glob(pattern, recursive=True)]  # noqa: PTH207
    matches = [path for path in found if not _private(path, Path(pattern))]
    files = [path for path in matches if not path.is_dir() and kind_of(path)]
    for folder in matches:
        if folder.is_dir():
            files.extend(_data_files(folder))
    if not files:
        raise InputError(f"no data file matches {pattern}; known suffixes: {' '.join(KINDS)}")
    return files


def _private(match: Path, pattern: Path) -> bool:
    """Whether a wildcard, not the caller's own letters, found a name that folders leave out."""
    if any(part.startswith("_") for part in pattern.parts if glob.has_magic(part)):
        return False
    return any(is_hidden(part) for part in match.parts if part not in pattern.parts)


def _missing(path: Path) -> str:
    text = str(path)
    if "\n" in text or len(text) > _LONGEST_PATH:
        return "this text is not a path of a file: write it to a file first, and name that"
    folder = path.parent
    if path.is_symlink():
        return f"no such file: {path} is a link to {path.readlink()}, which does not exist"
    if not folder.is_dir():
        return f"no such file: {path} (there is no folder {folder})"
    try:
        # A name with = may hold a value of the data.
        names = sorted(
            path.name
            for path in folder.iterdir()
            if not is_hidden(path.name) and "=" not in path.name
        )
    except OSError:
        return f"no such file: {path}"
    return f"no such file: {path}; {did_you_mean(path.name, names)}"

"""Data sets as their authors published them: found by name, and taken apart into words once."""

import hashlib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

import dp_sips

_SCHEMA: Final = pa.schema([("user", pa.string()), ("item", pa.string())])
_BLOCK: Final = 1 << 24
_COMMON_NAMES: Final = {"train.csv", "test.csv", "*.csv"}
"""They say nothing outside of the data set's own folder."""


class MissingDataError(Exception):
    """A data set, or a column of it, is not there; the message says what to do."""


class Place(NamedTuple):
    """A file, or one inside of a zipped file."""

    path: Path
    inside: str | None = None


@dataclass(frozen=True)
class Published:
    """The files of a data set as published, and where users and texts stand in them.

    `text` has the names that the column may have, or its number in files without a header. Without
    a user column each document is a user of its own.
    """

    address: str
    files: tuple[str, ...]
    text: tuple[str, ...] | int
    user: str | None = None

    @property
    def folder(self) -> str:
        """The last part of the address: so does Kaggle call what is downloaded."""
        return self.address.rsplit("/", maxsplit=1)[-1]

    def find(self, folder: Path) -> list[Place] | None:
        """Return where the files are, if all of them are there."""
        found = [self._places(folder, name) for name in self.files]
        return [place for places in found for place in places] if all(found) else None

    def prepare(self, places: list[Place], name: str, cache: Path) -> Path:
        """Return a file of the words of these files, made once for each version of them."""
        stats = [(place, place.path.stat()) for place in places]
        facts = [(p.path.name, p.inside, s.st_size, s.st_mtime_ns) for p, s in stats]
        version = hashlib.sha256(repr((facts, self)).encode()).hexdigest()[:12]
        path = cache / f"{name}-{version}.parquet"
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            documents = self._documents(places)
            first = list(islice(documents, 1))  # an error in it is ours: Arrow would hide it
            texts = pa.RecordBatchReader.from_batches(_SCHEMA, chain(first, documents))
            dp_sips.write_tokens(texts, path, user="user", item=dp_sips.text.words("item"))
        return path

    def _places(self, folder: Path, name: str) -> list[Place]:
        own = folder / self.folder
        plain = sorted(own.rglob(name))
        zipped = [*sorted(own.rglob("*.zip")), folder / f"{self.folder}.zip"]
        if name not in _COMMON_NAMES:
            plain += [folder / name, folder / Path(name).stem / name]
            zipped.append(folder / f"{name}.zip")
        found = [Place(path) for path in plain if path.is_file()]
        found += [place for path in zipped if path.is_file() for place in _inside(path, name)]
        return found if "*" in name else found[:1]

    def _documents(self, places: list[Place]) -> Iterator[pa.RecordBatch]:
        first = 0
        for place in places:
            for batch in self._read(place):
                yield self._named(batch, first)
                first += batch.num_rows

    def _read(self, place: Place) -> Iterator[pa.RecordBatch]:
        """Read the text column, and the users' if there is one, as text."""
        with _opened(place) as stream:
            known = self._csv(stream).schema.names
        wanted = [self._text_column(known, place), *([self.user] if self.user else [])]
        types = dict.fromkeys(wanted, pa.string())
        with _opened(place) as stream:
            yield from self._csv(stream, include_columns=wanted, column_types=types)

    def _csv(self, stream: IO[bytes], **convert: Any) -> pacsv.CSVStreamingReader:
        headless = isinstance(self.text, int)
        return pacsv.open_csv(
            stream,
            pacsv.ReadOptions(block_size=_BLOCK, autogenerate_column_names=headless),
            pacsv.ParseOptions(newlines_in_values=True),
            pacsv.ConvertOptions(**convert),
        )

    def _text_column(self, known: list[str], place: Place) -> str:
        # Arrow calls the columns of a file without a header f0, f1 and so on.
        texts = (f"f{self.text}",) if isinstance(self.text, int) else self.text
        for text in texts:
            if text in known and (self.user is None or self.user in known):
                return text
        needed = " or ".join(texts) + (f", and {self.user}" if self.user else "")
        raise MissingDataError(f"{place.path} lacks {needed}: its columns are {', '.join(known)}")

    def _named(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Say whose each text is; one without an author is its own user."""
        users = pa.array(range(first, first + batch.num_rows)).cast(pa.string())
        if self.user:
            alone = pc.binary_join_element_wise("document", users, " ")
            users = pc.if_else(pc.equal(batch.column(1), ""), alone, batch.column(1))
        return pa.record_batch([users, batch.column(0)], schema=_SCHEMA)


def _inside(path: Path, name: str) -> list[Place]:
    with zipfile.ZipFile(path) as archive:
        names = sorted(archive.namelist())
    return [Place(path, inside) for inside in names if fnmatch(Path(inside).name, name)]


@contextmanager
def _opened(place: Place) -> Iterator[IO[bytes]]:
    if place.inside is None:
        with place.path.open("rb") as stream:
            yield stream
    else:
        with zipfile.ZipFile(place.path) as archive, archive.open(place.inside) as stream:
            yield stream

"""Every bad file is an `InputError` that names it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from dp_sips.errors import InputError, UsageError
from dp_sips.sources import open_source

TABLE = pa.table({"u": pa.array(range(50_000)), "i": [str(i) for i in range(50_000)]})


def test_missing_file_offers_the_nearest(tmp_path: Path, read: Any) -> None:
    pq.write_table(TABLE, tmp_path / "reviews.parquet")
    with pytest.raises(InputError, match=r"no such file: .*review\.parquet; did you mean 'reviews"):
        read(tmp_path / "review.parquet")
    (tmp_path / ".env").touch()
    with pytest.raises(InputError, match=r"no such file: .*; known: 'reviews\.parquet'$"):
        read(tmp_path / "something-else")
    with pytest.raises(InputError, match=r"no such file: .*there is no folder"):
        read(tmp_path / "nowhere" / "review.parquet")


def test_nothing_to_read(tmp_path: Path, read: Any) -> None:
    with pytest.raises(InputError, match=r"no data files in the folder .*; known suffixes: "):
        read(tmp_path)
    with pytest.raises(InputError, match=r"no data file matches .*\*\.csv; known suffixes: "):
        read(tmp_path / "*.csv")
    with pytest.raises(UsageError, match="list of paths is empty"):
        read([])


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.gz", "a.parquet.gz", "parquet"])
def test_unknown_suffix(name: str, tmp_path: Path, read: Any) -> None:
    (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=r"no suffix .*\.csv.* \(--delimiter ','\), or ';'"):
        read(tmp_path / name)


def test_paths_that_lead_nowhere(tmp_path: Path, read: Any) -> None:
    (tmp_path / "link.csv").symlink_to("gone.csv")
    with pytest.raises(InputError, match=r"link\.csv is a link to gone\.csv"):
        read(tmp_path / "link.csv")
    for place in (tmp_path, tmp_path / "*.csv", [tmp_path, tmp_path / "*.csv"]):
        with pytest.raises(InputError, match=r"link\.csv is a link to gone\.csv"):
            read(place)
    for name in ("n" * 300 + ".csv", "n" * 300 + "/a.csv"):
        with pytest.raises(InputError, match=r"n\S+ cannot be read: File name too long"):
            read(tmp_path / name)
    with pytest.raises(InputError, match="no user of that name"):
        read("~nobody-of-that-name/a.csv")
    with pytest.raises(UsageError, match="a path is empty"):
        read("")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_files_list_their_columns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "a.csv":
        path.write_text("u,i\n1,2\n")
    else:
        {"a.parquet": pq.write_table, "a.arrow": write_ipc}[name](TABLE, path)
    with pytest.raises(UsageError, match=rf"user= must name a column of .*{name}; it has 'u', 'i'"):
        open_source(path, user=None, item="i")


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


def write_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.parquet", pq.write_table), ("a.arrow", write_ipc), ("a.ipc", write_stream)],
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_truncated_files(
    name: str, write: Callable[[pa.Table, Path], Any], share: float, tmp_path: Path, read: Any
) -> None:
    path = tmp_path / name
    write(TABLE, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    said = "it ends too early,? or is .*: copy it again"
    with pytest.raises(InputError, match=rf"{name} cannot be read: {said}"):
        read(path)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.bz2", "a.csv.zst", "a.jsonl.gz"])
def test_truncated_packed_files(name: str, tmp_path: Path, read: Any) -> None:
    path = tmp_path / name
    row, head = ('{"u": 1, "i": 2}\n', "") if "json" in name else ("1,2\n", "u,i\n")
    with pa.CompressedOutputStream(path, pa.Codec.detect(path).name) as stream:
        stream.write((head + row * 1000).encode())
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(InputError, match=rf"{name} cannot be read: it ends too early or is dam"):
        read(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.csv.gz", "a.json.gz"])
def test_files_that_are_something_else(name: str, tmp_path: Path, read: Any) -> None:
    (tmp_path / name).write_bytes(b"PAR1 this is no such file" * 20)
    with pytest.raises(InputError, match=rf"{name} cannot be read"):
        read(tmp_path / name)


@pytest.mark.parametrize("start", [4, 1000])
def test_a_damaged_page_is_found_while_reading(start: int, tmp_path: Path, read: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, write_page_checksum=True)
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 100] = b"\xff" * 100
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"a\.parquet cannot be read"):
        read(path)


def test_permission_denied(tmp_path: Path, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)

    # Tests may run as root, who may read everything.
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refuse)
    with pytest.raises(InputError, match=r"a\.parquet cannot be read: permission denied"):
        read(path)


def test_mixed_types_are_found_before_the_first_batch(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [1], "i": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"u": [1], "i": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(
        InputError, match=r"column 'i' is int64 in .*a\.parquet but string in .*b\.parquet"
    ):
        open_source(tmp_path, user="u", item="i")


def test_missing_column_offers_the_nearest(tmp_path: Path, read: Any) -> None:
    pq.write_table(pa.table({"user_id": [1], "i": [1]}), tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match=r"no column 'userid' in .*a\.parquet: did you mean 'user_id'"
    ):
        read(tmp_path / "a.parquet", user="userid")


def test_a_file_that_vanishes_before_it_is_read(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet", user="u", item="i")
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(InputError, match=r"a\.parquet"):
        list(source.batches())


def test_a_damaged_dataset(tmp_path: Path, read: Any) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    dataset = pads.dataset(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="the dataset cannot be read"):
        read(dataset)

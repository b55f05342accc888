"""Files appear whole or not at all, in every format and for every type."""

import errno
import json
import os
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from dp_sips import OutputError, UsageError
from dp_sips.output import Writer, check_output, write_files, write_items
from dp_sips.sources.types import typed_table
from dp_sips.sources.values import ANY_KIND, encode

UUID = uuid.UUID(int=7)
TYPES: dict[str, tuple[Any, str, Any]] = {
    "int": (pa.array([7, None]), "7", 7),
    "uint64": (pa.array([2**64 - 1, None], pa.uint64()), str(2**64 - 1), 2**64 - 1),
    "bool": (pa.array([True, None]), "true", True),
    "text": (pa.array(["tea", None]), "tea", "tea"),
    "view": (pa.array(["tea", None], pa.string_view()), "tea", "tea"),
    "quoted": (pa.array(['a,"b"\n', None]), '"a,""b""\n"', 'a,"b"\n'),
    "empty": (pa.array(["", None]), '""', ""),
    "unicode": (pa.array(["žluť", None]), "žluť", "žluť"),
    "dictionary": (pa.array(["tea", None]).dictionary_encode(), "tea", "tea"),
    "numbers": (pa.array([7, None]).dictionary_encode(), "7", 7),
    "binary": (pa.array([b"\xff\x00", None]), "ff00", "ff00"),
    "fixed": (pa.array([b"ab", None], pa.binary(2)), "6162", "6162"),
    "binary view": (pa.array([b"ab", None], pa.binary_view()), "6162", "6162"),
    "decimal": (pa.array([Decimal("1.20"), None]), "1.20", "1.20"),
    "date": (pa.array([date(2024, 2, 1), None]), "2024-02-01", "2024-02-01"),
    "time": (pa.array([time(1, 2), None], pa.time32("s")), "01:02:00", "01:02:00"),
    "timestamp": (
        pa.array([datetime(2024, 2, 1), None], pa.timestamp("s")),  # noqa: DTZ001
        "2024-02-01 00:00:00",
        "2024-02-01 00:00:00",
    ),
    "duration": (pa.array([timedelta(seconds=5), None], pa.duration("s")), "5", 5),
    "uuid": (pa.array([UUID.bytes, None], pa.uuid()), str(UUID), str(UUID)),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_as_csv_and_json(tmp_path: Path, name: str) -> None:
    values, as_csv, as_json = TYPES[name]
    table = pa.table({"item": values})
    write_items(table, tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_bytes().decode() == f"item\n{as_csv}\n\n"
    write_items(table, tmp_path / "o.jsonl")
    lines = (tmp_path / "o.jsonl").read_bytes().decode().removesuffix("\n").split("\n")
    assert [json.loads(line) for line in lines] == [{"item": as_json}, {"item": None}]


@pytest.mark.parametrize("name", TYPES)
def test_parquet_and_arrow_keep_types(tmp_path: Path, name: str) -> None:
    table = pa.table({"item": TYPES[name][0]})
    write_items(table, tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet")["item"].to_pylist() == table["item"].to_pylist()
    write_items(table, tmp_path / "o.arrow")
    assert pa.ipc.open_file(tmp_path / "o.arrow").read_all() == table


def test_csv_reads_back(tmp_path: Path) -> None:
    table = pa.table({'a "b"': ["x,y", "", 'say "hi"'], "c": ["1\n2", "plain", " spaced "]})
    write_items(table, tmp_path / "o.csv")
    options = pacsv.ParseOptions(newlines_in_values=True)
    assert pacsv.read_csv(tmp_path / "o.csv", parse_options=options) == table


def test_null_and_empty_text_differ_in_csv(tmp_path: Path) -> None:
    write_items(pa.table({"a": ["", None], "b": [None, "x"]}), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == 'a,b\n"",\n,x\n'


def test_text_escapes_line_breaks_as_postgresql_does(tmp_path: Path) -> None:
    write_items(pa.table({"a": ["x, y", "1\n2", "\\n", None, ""]}), tmp_path / "o.txt")
    assert (tmp_path / "o.txt").read_text() == "x, y\n1\\n2\n\\\\n\n\\N\n\n"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow", "txt", "csv.gz"])
def test_no_items(tmp_path: Path, suffix: str) -> None:
    write_items(pa.table({"item": pa.array([], pa.string())}), tmp_path / f"o.{suffix}")
    assert (tmp_path / f"o.{suffix}").exists()


def test_the_same_items_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write_items(pa.table({"item": ["x"]}), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_the_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_items(pa.table({"item": ["x"]}), tmp_path / "o.csv")
    assert (tmp_path / "o.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.csv").symlink_to(tmp_path / "folder" / "o.csv")
    check_output(tmp_path / "link.csv")
    write_items(pa.table({"item": ["x"]}), tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "folder" / "o.csv").read_text() == "item\nx\n"


@pytest.mark.parametrize("failure", [KeyboardInterrupt, ValueError, MemoryError])
def test_any_failure_leaves_the_old_file(tmp_path: Path, failure: type[BaseException]) -> None:
    path = tmp_path / "o.csv"
    path.write_text("old")

    def fail(sink: BinaryIO) -> None:
        sink.write(b"half of")
        raise failure

    with pytest.raises(failure):
        write_files({path: fail})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"o.csv could not be written: No space left"):
        write_files({tmp_path / "o.csv": full_disk})
    assert list(tmp_path.iterdir()) == []


def test_what_arrow_cannot_write_is_an_output_error(tmp_path: Path) -> None:
    table = pa.table({"item": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(OutputError, match=r"o.parquet could not be written"):
        write_items(table, tmp_path / "o.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_vanished_folder_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="could not be written: No such file"):
        write_items(pa.table({"item": ["x"]}), tmp_path / "missing" / "o.csv")


def test_a_dangling_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "missing" / "o.csv")
    with pytest.raises(UsageError, match=r"there is no folder .*missing"):
        check_output(tmp_path / "link.csv")


def write(text: str) -> Writer:
    return lambda sink: sink.write(text.encode())


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("failing", [0, 1])
def test_all_files_or_none(tmp_path: Path, failing: int, *, old: bool) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths if old else []:
        path.write_text("old")
    writers = dict(zip(paths, map(write, ("new a", "new b")), strict=True))
    with pytest.raises(OutputError, match="No space left"):
        write_files(writers | {paths[failing]: full_disk})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (
        {"a": "old", "b": "old"} if old else {}
    )
    write_files(writers)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a": "new a",
        "b": "new b",
    }


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("failure", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_rename_that_fails_undoes_the_one_before(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    *,
    old: bool,
    links: bool,
) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths if old else []:
        path.write_text("old")
    rename = Path.replace

    def fail(self: Path, target: Path) -> Path:
        renamed = rename(self, target)  # an interrupt can come right after it
        if target == paths[1]:
            raise failure
        return renamed

    monkeypatch.setattr(Path, "replace", fail)
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    with pytest.raises((OutputError, KeyboardInterrupt)):
        write_files({path: write("new") for path in paths})
    monkeypatch.undo()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == (
        {"a": "old", "b": "old"} if old else {}
    )


def no_links(*_: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", no_links)
    first, path = tmp_path / "first", tmp_path / "o.csv"

    def appear(sink: BinaryIO) -> None:
        sink.write(b"ours")
        path.write_text("theirs")

    with pytest.raises(OutputError, match=r"o\.csv has appeared in the meantime.*--force"):
        write_files({first: write("ours"), path: appear}, overwrite=False)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"o.csv": "theirs"}
    path.unlink()
    write_files({first: write("ours"), path: write("ours")}, overwrite=False)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "first": "ours",
        "o.csv": "ours",
    }


def test_nobody_else_can_read_what_is_being_written(tmp_path: Path) -> None:
    modes: list[int] = []

    def look(sink: BinaryIO) -> None:
        sink.write(b"data")
        modes.extend(path.stat().st_mode & 0o777 for path in tmp_path.iterdir())

    write_files({tmp_path / "o.csv": look})
    assert modes == [0o600]


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    for mode in (0o600, 0o640, 0o666):
        path = tmp_path / f"{mode:o}.csv"
        path.touch()
        path.chmod(mode)
        write_items(pa.table({"item": ["x"]}), path)
        assert path.stat().st_mode & 0o777 == mode


def test_cells_that_a_spreadsheet_would_run(tmp_path: Path) -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "\r=x", "a=1", "", None, "'=1"]
    table = pa.table({"=name": cells, "number": pa.array(range(-5, 5))})
    write_items(table, tmp_path / "o.csv", escape_formulas=True)
    shown = (tmp_path / "o.csv").read_bytes().decode()
    assert shown == (
        "'=name,number\n'=1+1,-5\n'+1,-4\n'-1,-3\n'@x,-2\n'\tx,-1\n\"'\r=x\",0\n"
        'a=1,1\n"",2\n,3\n\'=1,4\n'
    )
    write_items(table, tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().startswith("=name,number\n=1+1,")


def test_an_unknown_suffix_says_how_to_name_the_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'as format="csv" \(--format csv\)'):
        write_items(pa.table({"i": ["a"]}), tmp_path / "a.xlsx")
    write_items(pa.table({"i": ["a"]}), tmp_path / "a.xlsx", format="csv")


LONG = [Decimal("1" * 30), Decimal("1" * 30 + ".5")]  # more digits than decimals are rounded to


@pytest.mark.parametrize(
    "released", [["abc", 7, "7", True, Decimal("1.5"), *LONG, None], ["abc"], [7]]
)
def test_json_lines_have_values_of_several_kinds_as_they_are(
    released: list[Any], tmp_path: Path
) -> None:
    carried = ANY_KIND.wrap_array(encode(released, "i", "the test"))
    table = typed_table(pa.table({"i": carried, "users": range(len(released))}))
    write_items(table, tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    found = [json.loads(line, parse_float=Decimal) for line in lines]
    assert found == [{"i": value, "users": n} for n, value in enumerate(released)]
    assert [type(row["i"]) for row in found] == [type(value) for value in released]


def test_csv_keeps_values_of_several_kinds_apart(tmp_path: Path) -> None:
    carried = ANY_KIND.wrap_array(encode(["7", 7], "i", "the test"))
    write_items(typed_table(pa.table({"i": carried})), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == 'i\n"""7"""\n7\n'

"""dp-sips select: what comes out, and where."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import FLAGS

COMMON = ["jam", "rice", "tea"]


def test_items_go_to_stdout_as_csv_and_the_summary_to_stderr(select: Any) -> None:
    ran = select()
    assert ran.code == 0
    assert ran.out.splitlines() == ["item", *COMMON]
    assert "Released 3 items." in ran.err
    assert "(1, 1e-05)-differentially private" in ran.err


def test_the_summary_names_what_auto_chose(run: Any, select: Any, data: Path) -> None:
    without_hint = FLAGS[: FLAGS.index("--items-per-user")]
    chosen = "By its private look at the data, auto chose "
    assert chosen in run("select", data, *without_hint).err
    assert chosen not in select().err


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (("--item", "a", "--item", "b", "--hierarchy"), ("a", "a, b")),
        (("--item", "words", "--ngrams", "2"), ("single words", "sequences of 2 words")),
    ],
)
def test_the_summary_names_what_auto_chose_for_each_level(
    flags: tuple[str, ...], names: tuple[str, str], run: Any, tmp_path: Path
) -> None:
    path, certificate = tmp_path / "levels.parquet", tmp_path / "certificate.json"
    rows = [(user, "x", n, f"w{n}") for user in range(3000) for n in range(50)]
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table([*map(pa.array, columns)], names=["u", "a", "b", "words"]), path)
    budget = ("--epsilon", "10", "--delta", "1e-5", "--certificate", certificate)
    said = run("select", path, "--user", "u", *flags, *budget).err
    first, second = (level["mechanism"] for level in json.loads(certificate.read_text())["levels"])
    assert f"auto chose {first} for {names[0]}, and {second} for {names[1]}.\n" in said
    # Everybody has one a and 50 b: a chance below 1e-6 that noise hides this.
    assert "--ngrams" in flags or (first, second) == ("matching", "cumulative")


def test_quiet_says_nothing_on_stderr(select: Any) -> None:
    ran = select("--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["item", *COMMON]


@pytest.mark.parametrize("size", ["8000000000", "8GB", "0.5 GiB"])
def test_a_limit_on_memory(select: Any, size: str) -> None:
    assert select("--memory-limit", size).out.splitlines() == ["item", *COMMON]


def test_a_limit_on_memory_without_its_unit(select: Any) -> None:
    ran = select("--memory-limit", "8")
    assert ran.refused("--memory-limit must be at least \"200 MB\", got '8'", '"8 GB"')


@pytest.mark.parametrize(
    "flags", [(), ("--json", "--mechanism", "sips"), ("--mechanism", "weighted-gaussian")]
)
def test_no_count_of_users_rows_or_candidates_is_shown(select: Any, flags: Any) -> None:
    ran = select(*flags)
    for count in ("300", "1200", "1,200", "303", "own-"):
        assert count not in ran.out + ran.err


def test_rho_states_the_papers_guarantee(run: Any, data: Path) -> None:
    flags = (
        "--user",
        "user",
        "--item",
        "item",
        "--rho",
        "0.1",
        "--delta",
        "1e-5",
        "--ratio",
        "1/3",
    )
    ran = run("select", data, *flags)
    assert ran.code == 0
    assert "1e-05-approximate 0.1-zCDP" in ran.err


@pytest.mark.parametrize(
    "flags",
    [
        ("--mechanism", "weighted-gaussian"),
        ("--rounds", "5", "--ratio", "1/4"),
        ("--engine", "reference"),
        ("--engine", "memory", "--threads", "1"),
        ("--threads", "2"),
        ("--max-items", "4"),
    ],
)
def test_every_way_to_run_releases_the_common_items(select: Any, flags: Any) -> None:
    assert select(*flags).out.splitlines() == ["item", *COMMON]


def test_an_empty_release_is_a_release(select: Any, tmp_path: Path) -> None:
    ran = select("--epsilon", "0.01", "-o", tmp_path / "out.csv")
    assert ran.code == 0
    assert "Released no items" in ran.err
    assert (tmp_path / "out.csv").read_text() == "item\n"


@pytest.mark.parametrize(
    "name", ["o.parquet", "o.csv", "o.jsonl", "o.ndjson", "o.arrow", "o.feather", "o.ipc", "o.txt"]
)
def test_the_suffix_tells_the_format(select: Any, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ran = select("-o", path)
    assert (ran.code, ran.out) == (0, "")
    assert f"Released 3 items to {path}." in ran.err
    assert read_back(path) == COMMON
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["data.parquet", name])


def read_back(path: Path) -> list[str]:
    match path.suffix:
        case ".parquet":
            return pq.read_table(path)["item"].to_pylist()  # type: ignore[no-any-return]
        case ".csv":
            return path.read_text().splitlines()[1:]
        case ".txt":
            return path.read_text().splitlines()
        case ".jsonl" | ".ndjson":
            return [json.loads(line)["item"] for line in path.read_text().splitlines()]
    return pa.ipc.open_file(path).read_all()["item"].to_pylist()  # type: ignore[no-any-return]


def test_gzip(select: Any, tmp_path: Path) -> None:
    assert select("-o", tmp_path / "o.csv.gz").code == 0
    assert gzip.decompress((tmp_path / "o.csv.gz").read_bytes()) == b"item\njam\nrice\ntea\n"


def test_a_format_for_stdout_and_for_an_unknown_suffix(select: Any, tmp_path: Path) -> None:
    assert json.loads(select("--format", "jsonl").out.splitlines()[0]) == {"item": "jam"}
    assert select("--format", "txt", "-o", tmp_path / "list").code == 0
    assert (tmp_path / "list").read_text().split() == COMMON


def test_json_has_items_and_certificate(select: Any) -> None:
    shown = json.loads(select("--json").out)
    assert shown["items"] == COMMON
    assert shown["certificate"]["asked"] == {"epsilon": 1.0, "delta": 1e-5, "rho": None}
    assert shown["certificate"]["private"] is True


def test_json_with_a_file_has_its_path(select: Any, tmp_path: Path) -> None:
    shown = json.loads(select("--json", "-o", tmp_path / "o.csv").out)
    assert shown.keys() == {"output", "certificate"}
    assert shown["output"] == str(tmp_path / "o.csv")


def test_a_certificate_file(select: Any, tmp_path: Path) -> None:
    assert select("--certificate", tmp_path / "c.json").code == 0
    certificate = json.loads((tmp_path / "c.json").read_text())
    assert certificate["mechanism"]["name"] == "cumulative"


def test_several_item_columns_are_one_item(run: Any, tmp_path: Path) -> None:
    table = pa.table({"u": range(200), "city": ["Rome"] * 200, "n": [7] * 200})
    pq.write_table(table, tmp_path / "d.parquet")
    flags = ("--user", "u", "--item", "city", "--item", "n", "--rho", "1", "--delta", "1e-5")
    assert run("select", tmp_path / "d.parquet", *flags).out == "city,n\nRome,7\n"
    shown = json.loads(run("select", tmp_path / "d.parquet", *flags, "--json").out)
    assert shown["items"] == [{"city": "Rome", "n": 7}]
    assert run("select", tmp_path / "d.parquet", *flags, "-o", tmp_path / "o.txt").refused(".csv")


def test_several_inputs_globs_and_folders(run: Any, tmp_path: Path) -> None:
    for part in range(3):
        table = pa.table({"u": range(100 * part, 100 * part + 100), "i": ["tea"] * 100})
        pq.write_table(table, tmp_path / f"{part}.parquet")
    flags = ("--user", "u", "--item", "i", "--rho", "1", "--delta", "1e-5", "--quiet")
    files = sorted(tmp_path.glob("*.parquet"))
    for inputs in (files, [tmp_path], [tmp_path / "*.parquet"]):
        assert run("select", *inputs, *flags).out == "i\ntea\n"


def test_csv_columns_are_text_unless_a_type_is_declared(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("u,i\n" + "".join(f"{user},007\n" for user in range(200)))
    flags = ("--user", "u", "--item", "i", "--rho", "1", "--delta", "1e-5", "--quiet")
    assert run("select", path, *flags).out == "i\n007\n"
    assert run("select", path, *flags, "--type", "i=int", "--type", "u=int").out == "i\n7\n"
    for words, message in (
        (("--type", "i"), "write COLUMN=TYPE, as --type zip=string"),
        (("--type", "i=zip"), "unknown type 'zip' of 'i'"),
        (("--type", "i=int", "--type", "i=string"), "names the column 'i' twice"),
        (("--type", "zip=int"), "'zip', which is neither the user nor an item"),
        (("--type", "i=date"), "d.csv has a value that is not of the type date: write dates as"),
        (("--text",), "unknown flag --text: here it is called --type"),
    ):
        assert run("select", path, *flags, *words).refused(message)


def test_nulls_are_dropped_or_grouped_on_request(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    rows = ({"u": user, "i": None if user % 2 else "tea"} for user in range(400))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--user", "u", "--item", "i", "--rho", "1", "--delta", "1e-5", "--json")
    assert json.loads(run("select", path, *flags, "--nulls", "drop").out)["items"] == ["tea"]
    grouped = json.loads(run("select", path, *flags, "--nulls", "group").out)
    assert grouped["items"] == ["tea", None]
    assert run("select", path, *flags).refused("'i'", "nulls", "--nulls drop", "--nulls group")


def test_the_guarantee_is_said_once_where_it_is_the_same(select: Any) -> None:
    _, one, other, *_ = select("--mechanism", "sips").err.splitlines()
    assert one == "Guarantee: (1, 1e-05)-differentially private as asked and as spent,"
    assert other == "for one user with all of their items."


def test_the_guarantee_is_said_as_spent_and_as_asked(run: Any, data: Path) -> None:
    words = "--user user --item item --rho 0.1 --delta 1e-5 --mechanism sips"
    _, one, *_ = run("select", data, *words.split()).err.splitlines()
    assert re.fullmatch(r"Guarantee: \(.*\)-DP as spent, 1e-05-approximate 0.1-zCDP as asked,", one)


def test_an_output_that_a_killed_run_has_written(select: Any, tmp_path: Path) -> None:
    """Killed between the release and the removal of the checkpoint."""
    out, saved = tmp_path / "o.csv", tmp_path / "saved"
    out.write_text("item\ntea\n")
    saved.mkdir(mode=0o700)
    (saved / "run.json").write_text("{}")
    (saved / "run.json").chmod(0o600)
    flags = ("-o", out, "--checkpoint", saved)
    assert select(*flags).refused(f"{out} exists, and --checkpoint {saved} has a run", "--force")
    assert select(*flags, "--force").refused("is damaged")  # it would go on with a real one
    (saved / "run.json").unlink()
    assert select(*flags).refused(f"{out} exists: name another file")


def test_a_test_seed_repeats_the_release_and_says_so(select: Any) -> None:
    flags = ("--seed", "1", "--insecure-test", "--epsilon", "0.2", "--json")
    first, second = select(*flags), select(*flags)
    one, other = json.loads(first.out), json.loads(second.out)
    assert one["certificate"] | {"time": other["certificate"]["time"]} == other["certificate"]
    assert one["items"] == other["items"]
    assert "NOT PRIVATE" in first.err
    assert one["certificate"]["private"] is False


def test_force_replaces_a_file(select: Any, tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("old")
    assert select("-o", path).refused("exists", "--force")
    assert path.read_text() == "old"
    assert select("-o", path, "--force").code == 0
    assert path.read_text().splitlines() == ["item", *COMMON]


def test_formulas_are_escaped_where_asked(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"user": range(300), "item": ["=1+1"] * 300}), path)
    usual = ("select", path, *FLAGS)
    assert run(*usual).out == "item\n=1+1\n"
    assert run(*usual, "--escape-formulas").out == "item\n'=1+1\n"
    assert run(*usual, "--escape-formulas", "--format", "jsonl").refused(
        "--escape-formulas is for CSV"
    )


def test_an_empty_release_says_what_would_help(run: Any, data: Path) -> None:
    few = ("--epsilon", "0.01", "--delta", "1e-9", "--mechanism", "sips")
    ran = run("select", data, "--user", "user", "--item", "item", *few)
    assert "Released no items." in ran.err
    assert "- --epsilon 0.02 instead of 0.01: " in ran.err
    assert "coarser items" in ran.err


def test_a_small_release_says_where_to_look(select: Any) -> None:
    assert "dp-sips plan --levers" in select().err
    assert select("--quiet").err == ""


def test_only_a_terminal_sees_rows_counted(
    run: Any, select: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "a progress bar on a terminal counts" in " ".join(run("select", "--help").out.split())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert "row" in select().err
    assert select("--quiet").err == ""
    assert "row" not in select("--quiet", "--log-level", "info").err

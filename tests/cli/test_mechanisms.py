"""dp-sips mechanisms, and the flags of mechanisms."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import dp_sips
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.auto import CHOICES

ENOUGH = ("--epsilon", "1", "--delta", "1e-5")


class TestList:
    def test_a_line_for_each(self, run: Any) -> None:
        ran = run("mechanisms")
        assert (ran.code, ran.err) == (0, "")
        lines = {line.split()[0]: line for line in ran.out.split("\n\n")[0].splitlines()}
        assert list(lines) == list(MECHANISMS)
        for name, kind in MECHANISMS.items():
            assert ("sequential" if kind.sequential else "parallel") in lines[name]
            assert kind.noise in lines[name]
            assert kind.good_for in lines[name]

    def test_json(self, run: Any) -> None:
        shown = {row["name"]: row for row in json.loads(run("mechanisms", "--json").out)}
        assert shown.keys() == MECHANISMS.keys()
        assert not shown["dpsu"]["parallel"]
        assert shown["sips"]["noise"] == "Gaussian"
        assert [name for name, row in shown.items() if row["auto"]] == sorted(
            dict(CHOICES), key=list(MECHANISMS).index
        )

    @pytest.mark.parametrize(
        ("name", "asked"),
        [
            ("matching", {"epsilon": 1.0, "items_per_user": 2}),
            ("cumulative", {"epsilon": 1.0, "items_per_user": 20}),
            ("cumulative", {"rho": 0.1, "max_items": 80}),
            ("sips-rule", {"epsilon": 1.0, "max_items": 79}),
            ("sips-rule", {"epsilon": 1.0, "max_items": 9}),
            ("matching", {"epsilon": 1.0, "max_items": 8}),
            ("sips", {"rho": 0.1, "max_items": 79}),
            ("single", {"epsilon": 1.0, "max_items": 1}),
        ],
    )
    def test_auto_is_as_it_says(self, name: str, asked: dict[str, Any]) -> None:
        assert dp_sips.plan("auto", delta=1e-5, **asked).mechanism.name == name
        assert name in dict(CHOICES)


class TestFlags:
    @pytest.mark.parametrize("name", ["dpsu", "policy-laplace", "gw", "mad", "mad2r"])
    def test_buffer(self, run: Any, name: str) -> None:
        flags = ("plan", name, *ENOUGH, "--buffer", "1.5", "--json")
        kind: Any = MECHANISMS[name]
        expected = dp_sips.plan(kind(buffer=1.5), epsilon=1.0, delta=1e-5)
        assert json.loads(run(*flags).out)["rounds"] == json.loads(json.dumps(expected.table()))

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--buffer", "1"), ("--buffer is for", "dpsu", "'auto'")),
            (("sips", "--buffer", "1"), ("--buffer is for", "dpsu", "'sips'")),
            (("dpsu", "--rounds", "2"), ("--rounds is for", "sips", "'dpsu'")),
            (("--rounds", "2", "--buffer", "1"), ("--buffer is for", "'sips'")),
            (("dpsv", "--buffer", "1"), ("unknown mechanism 'dpsv'", "dpsu")),
            (("dpsu", "--buffer", "-1"), ("buffer must be from 0 to 1000000", "-1")),
            (("dpsu", "--buffer", "inf"), ("buffer must be", "inf")),
            (("single", "--max-items", "2"), ("--max-items 1", "got 2")),
        ],
        ids=str,
    )
    def test_bad_usage(self, run: Any, words: Any, message: Any) -> None:
        assert run("plan", *words, *ENOUGH).refused(*message)


class TestSelect:
    @pytest.mark.parametrize("name", ["mad", "mad2r", "dpsu", "policy-laplace", "gw"])
    def test_mechanisms_with_targets_run(self, select: Any, name: str) -> None:
        self.runs(name, select("--epsilon", "4", "--buffer", "8", *self.flags(name)))

    @pytest.mark.parametrize("name", ["matching", "single"])
    def test_other_mechanisms_run(self, select: Any, name: str) -> None:
        self.runs(name, select("--epsilon", "4", *self.flags(name)))

    @staticmethod
    def flags(name: str) -> tuple[str, ...]:
        return ("--mechanism", name, "--json", "--quiet")

    @staticmethod
    def runs(name: str, ran: Any) -> None:
        shown = json.loads(ran.out)
        assert ran.code == 0
        assert set(shown["items"]) <= {"jam", "rice", "tea"}
        assert shown["items"]
        assert shown["certificate"]["mechanism"]["name"] == name

    @pytest.mark.parametrize("name", ["dpsu", "policy-laplace", "gw"])
    def test_turns_are_not_for_spark(self, select: Any, name: str) -> None:
        ran = select("--mechanism", name, "--engine", "spark", "--quiet")
        assert ran.refused(f"{name} goes through the users one after the other", "memory")


class TestHistogram:
    @staticmethod
    def file(tmp_path: Path, text: str) -> Path:
        path = tmp_path / "public.csv"
        path.write_text(text)
        return path

    def test_favourites_are_public(self, select: Any, tmp_path: Path) -> None:
        """Everybody backs jam until it is full, then tea."""
        path = self.file(tmp_path, "item,count\ntea,5\njam,9\nunknown,7\ntea,1\n")
        flags = ("--histogram", path, "--buffer", "400", "--json", "--quiet")
        shown = json.loads(select(*flags).out)
        assert shown["items"] == ["jam"]
        used = {"buffer": 400, "histogram": 3, "ties": "items"}
        assert shown["certificate"]["mechanism"]["parameters"] == used

    def test_lists_are_public(self, select: Any, tmp_path: Path) -> None:
        """A user's first item has enough seats for few users; the last one gets what is left."""
        path = self.file(tmp_path, "item,count\ntea,5\njam,9\n")
        flags = ("--mechanism", "matching", "--histogram", path, "--json", "--quiet")
        shown = json.loads(select(*flags).out)
        assert shown["items"]
        used = {"laps": 3, "histogram": 2, "min_users": 1}
        assert shown["certificate"]["mechanism"]["parameters"] == used

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    @pytest.mark.parametrize("items", [("00501", "10001"), (501, 10001)], ids=["text", "numbers"])
    def test_items_are_read_as_the_data_has_them(
        self, run: Any, tmp_path: Path, suffix: str, items: Any
    ) -> None:
        """In a CSV file, what looks like a number may be text: a zip code."""
        table = pa.table({"u": [*range(300)] * 2, "i": [x for x in items for _ in range(300)]})
        data = tmp_path / f"data.{suffix}"
        {"csv": pacsv.write_csv, "parquet": pq.write_table}[suffix](table, data)
        path = self.file(tmp_path, "i,count\n10001,1\n00501,5\n")
        flags = ("--user", "u", "--item", "i", "--histogram", path, "--buffer", "400", *ENOUGH)
        types = ("--type", "i=int") if suffix == "csv" and items[0] == 501 else ()
        assert json.loads(run("select", data, *flags, *types, "--json").out)["items"] == [items[0]]

    def test_columns_of_both_kinds(self, run: Any, tmp_path: Path) -> None:
        rows = {"u": [*range(300)] * 2, "zip": ["00501"] * 600, "n": [1] * 300 + [2] * 300}
        pq.write_table(pa.table(rows), tmp_path / "d.parquet")
        path = self.file(tmp_path, "count,n,zip\n1,1,00501\n5,2,00501\n")
        flags = ("--user", "u", "--item", "zip", "--item", "n", "--histogram", path, *ENOUGH)
        ran = run("select", tmp_path / "d.parquet", *flags, "--buffer", "400", "--json")
        assert json.loads(ran.out)["items"] == [{"zip": "00501", "n": 2}]

    def test_items_that_the_data_cannot_have(self, run: Any, tmp_path: Path) -> None:
        pq.write_table(pa.table({"u": [1], "i": [1]}), tmp_path / "d.parquet")
        path = self.file(tmp_path, "i,count\njam,1\n")
        flags = ("--user", "u", "--item", "i", "--histogram", path, *ENOUGH)
        assert run("select", tmp_path / "d.parquet", *flags).refused(
            "'i'", "type int:", "public.csv"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("item\njam\n", ("count", "public.csv")),
            ("word,count\njam,1\n", ("item", "public.csv")),
            ("item,count\njam,x\n", ("'count'", "not of the type int:")),
            ("item,count\njam,1.5\n", ("'count'", "not of the type int:")),
            ("item,count\njam,-1\n", ("whole number from 0 to", "-1", "jam")),
            ("item,count\njam,\ntea,3\n", ("null",)),
        ],
        ids=str,
    )
    def test_bad_files(self, select: Any, tmp_path: Path, text: str, message: Any) -> None:
        path = self.file(tmp_path, text)
        assert select("--histogram", path, "--quiet").refused(*message)

    def test_counts_that_are_dates(self, select: Any, tmp_path: Path) -> None:
        table = pa.table({"item": ["jam"], "count": [dt.date(2024, 5, 1)]})
        pq.write_table(table, tmp_path / "h.parquet")
        ran = select("--histogram", tmp_path / "h.parquet")
        assert ran.refused("'count'", "date32", "cannot be read as int")

    def test_no_file(self, select: Any) -> None:
        assert select("--histogram", "nowhere.csv").refused("nowhere.csv")

    def test_is_for_gw_and_matching(self, select: Any, tmp_path: Path) -> None:
        path = self.file(tmp_path, "item,count\ntea,5\n")
        ran = select("--histogram", path, "--mechanism", "sips", "--quiet")
        assert ran.refused("--histogram is for gw or matching", "'sips'")

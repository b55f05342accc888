"""Standard input, other CSV, --dry-run, --config and --log-level."""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import FLAGS, Run, make_data

RELEASED = ["item", "jam", "rice", "tea"]


def csv_of(users: int = 300, delimiter: str = ",") -> str:
    rows = zip(*make_data(users).to_pydict().values(), strict=True)
    return "".join(f"{user}{delimiter}{item}\n" for user, item in rows)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Put bytes on standard input, and temporaries into a folder of their own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def piped(content: bytes) -> None:
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))
        monkeypatch.setattr(sys, "stdin", stream)

    return piped


class TestStandardInput:
    def test_csv(self, run: Run, piped: Any, tmp_path: Path) -> None:
        piped(("user,item\n" + csv_of()).encode())
        assert run("select", "-", *FLAGS).out.split() == RELEASED
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
    def test_other_kinds_are_told_by_their_first_bytes(
        self, run: Run, piped: Any, tmp_path: Path, kind: str
    ) -> None:
        from dp_sips.formats import WRITERS

        sink = io.BytesIO()
        WRITERS[kind](make_data(), sink)
        piped(sink.getvalue())
        assert run("select", "-", *FLAGS).out.split() == RELEASED
        assert list(tmp_path.iterdir()) == []

    def test_errors_speak_of_standard_input(self, run: Run, piped: Any, tmp_path: Path) -> None:
        piped(b"user,other\n1,2\n")
        assert run("select", "-", *FLAGS).refused("no column 'item' in standard input")
        assert list(tmp_path.iterdir()) == []

    def test_so_does_a_dry_run(self, run: Run, piped: Any, tmp_path: Path) -> None:
        for command in ("select", "count"):
            piped(("user,item\n" + csv_of()).encode())
            ran = run(command, "-", *FLAGS, "--dry-run")
            assert ran.out.startswith("Would read standard input:\n")
            assert str(tmp_path) not in ran.out

    def test_comes_alone(self, run: Run, data: Path) -> None:
        assert run("select", "-", data, *FLAGS).refused("comes alone")

    def test_a_terminal_is_not_read(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert run("select", "-", *FLAGS).refused("nothing is piped")

    def test_the_copy_is_private_and_removed(self, tmp_path: Path) -> None:
        """A process of its own that waits for more input, and is told to end."""
        env = os.environ | {"TMPDIR": str(tmp_path)}
        command = [sys.executable, "-m", "dp_sips", "select", "-", *FLAGS]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        ) as ran:
            assert ran.stdin is not None
            ran.stdin.write(b"user,item\n" + b"1,2\n" * 1_000_000)
            ran.stdin.flush()
            (copy,) = tmp_path.glob(".dp-sips-*")
            assert copy.stat().st_mode & 0o777 == 0o600
            ran.terminate()
            ran.communicate()
        assert ran.returncode == 143
        assert list(tmp_path.iterdir()) == []


class TestOtherCsv:
    def test_delimiter_and_no_header(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "log.txt"
        path.write_text(csv_of(delimiter="|"))
        columns = ("--user", "1", "--item", "2", *FLAGS[4:])
        ran = run("select", path, "--delimiter", "|", "--no-header", *columns)
        assert ran.out.split() == ["2", *RELEASED[1:]]

    def test_a_tab_can_be_typed(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "log.txt"
        path.write_text("user\titem\n" + csv_of(delimiter="\t"))
        assert run("select", path, "--delimiter", "\\t", *FLAGS).out.split() == RELEASED

    def test_encoding(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        path.write_text("user,item\n" + csv_of().replace("tea", "thé"), encoding="latin-1")
        assert run("select", path, *FLAGS).refused("--encoding")
        assert "thé" in run("select", path, "--encoding", "latin-1", *FLAGS).out

    def test_a_wrong_delimiter_is_told(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        path.write_text("user;item\n" + csv_of(delimiter=";"))
        assert run("select", path, *FLAGS).refused("--delimiter ';'")


class TestDryRun:
    def test_says_what_would_happen(self, run: Run, data: Path, tmp_path: Path) -> None:
        ran = run("select", data, *FLAGS, "--dry-run", "-o", tmp_path / "out.csv")
        assert ran.code == 0
        assert "user  user (int64)" in ran.out
        assert "item  item (string)" in ran.out
        assert "Nothing was released or spent." in ran.out
        assert "for a 50 % chance" in ran.out
        assert list(tmp_path.iterdir()) == [data]

    def test_reads_no_rows(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "log.csv"
        path.write_text('user,item\n1,"a quote that is left open\n')
        assert run("select", path, *FLAGS, "--dry-run").code == 0
        assert run("select", path, *FLAGS).refused("quote")

    def test_finds_what_is_wrong(self, run: Run, data: Path) -> None:
        assert run("select", data, *FLAGS, "--item", "none", "--dry-run").refused("no column")
        assert run("select", data, *FLAGS[:4], "--dry-run").refused("epsilon")

    @pytest.mark.parametrize("command", ["select", "count"])
    def test_says_what_is_wrong_with_the_engine(self, run: Run, data: Path, command: str) -> None:
        ran = run(command, data, *FLAGS, "--memory-limit", "100MB", "--dry-run")
        assert ran.refused('--memory-limit must be at least "200 MB"')

    def test_counts(self, run: Run, data: Path, tmp_path: Path) -> None:
        out = run("count", data, *FLAGS, "--share", "0.25", "--dry-run").out
        assert "item  item (string)" in out
        assert "together have epsilon = 1, delta = 1e-05, as asked. The counts have 25%" in out
        keys = tmp_path / "keys.csv"
        keys.write_text("item\ntea\n")
        flags = (*FLAGS[:-2], "--keys", keys, "--dry-run")
        out = run("count", data, *flags, "--max-items", "3").out
        assert "The items are given" in out
        assert "is for the counts; a user counts for at most 3 items" in out


class TestConfig:
    @pytest.fixture
    def config(self, tmp_path: Path, data: Path) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(
            f'input = "{data}"\nuser = "user"\nitem = ["item"]\nepsilon = 1\ndelta = 1e-5\n'
            "items-per-user = 100\nquiet = true\njson = false\n"
        )
        return path

    def test_has_the_names_of_the_flags(self, run: Run, config: Path) -> None:
        ran = run("select", "--config", config)
        assert ran.out.split() == RELEASED
        assert ran.err == ""

    def test_the_command_line_overrides_it(self, run: Run, config: Path, tmp_path: Path) -> None:
        other = tmp_path / "other.parquet"
        pq.write_table(make_data().rename_columns(["user", "thing"]), other)
        ran = run("select", other, f"--config={config}", "--item", "thing")
        assert ran.out.split() == ["thing", *RELEASED[1:]]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("epsilom = 1", ("'epsilom'", "epsilon")),
            ("quiet = 3", ("quiet is true or false",)),
            ("epsilon = ", ("is not TOML",)),
            ("[select]\nepsilon = 1", ("a table 'select'", "top level", "without [select]")),
            ("[[input]]\npath = 1", ("a table 'input'", "top level")),
            ('epsilon = "much"', ("epsilon",)),
            ('config = "other.toml"', ("names 'config'", "for the command line alone")),
            ("help = true", ("names 'help'", "for the command line alone")),
        ],
    )
    def test_mistakes_are_told(
        self, run: Run, tmp_path: Path, text: str, words: tuple[str, ...]
    ) -> None:
        path = tmp_path / "run.toml"
        path.write_text(text)
        assert run("select", "--config", path).refused(*words)

    def test_lists_what_can_stand_there(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "run.toml"
        path.write_text("weather = 1")
        ran = run("select", "--config", path)
        assert ran.refused("known: ", "'user'")
        assert "'help'" not in ran.err
        assert "'config'" not in ran.err

    def test_one_form_of_the_budget_replaces_the_other(self, run: Run, config: Path) -> None:
        ran = run("select", "--config", config, "--rho=0.2", "--dry-run")
        assert "0.2-zCDP" in ran.out
        config.write_text(config.read_text().replace("epsilon = 1", "rho = 0.2"))
        assert "(1, 1e-05)" in run("select", "--config", config, "--epsilon", 1, "--dry-run").out

    def test_convert_takes_both_forms(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "run.toml"
        path.write_text("epsilon = 1.765\nthreshold-delta = 1e-5\n")
        assert "(1.765, δ)-DP" in run("convert", "--config", path, "--rho", "0.1").out

    def test_is_named_once_and_there(self, run: Run, config: Path) -> None:
        assert run("select", "--config", config, "--config", config).refused("twice")
        assert run("select", "--config").refused("needs a FILE")
        assert run("select", "--config", "none.toml").refused("none.toml cannot be read")


class TestLogging:
    def test_steps_are_logged_and_nothing_else(self, run: Run, data: Path) -> None:
        ran = run("select", data, *FLAGS, "--log-level", "INFO", "--quiet")
        assert "rounds: begin" in ran.err
        assert "300" not in ran.err
        assert "1200" not in ran.err

    def test_is_silent_unless_told(self, run: Run, data: Path) -> None:
        assert run("select", data, *FLAGS, "--quiet").err == ""

    def test_knows_its_levels(self, run: Run, data: Path) -> None:
        assert run("select", data, *FLAGS, "--log-level", "loud").refused("unknown log level")

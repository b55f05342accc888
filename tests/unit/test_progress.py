"""Progress: on stderr, when asked for or when there is a terminal, and otherwise silent."""

import pytest

from dp_sips import select_partitions
from dp_sips.progress import Progress


def test_silent_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with Progress().bar("reading", 10) as bar:
        bar(10)
    assert list(Progress(show=False).steps("rounds", "abc", 3)) == ["a", "b", "c"]
    assert capfd.readouterr() == ("", "")


def test_bars_go_to_stderr_and_vanish(capfd: pytest.CaptureFixture[str]) -> None:
    assert list(Progress(show=True).steps("rounds", "abc", 3)) == ["a", "b", "c"]
    with Progress(show=True).bar("reading", None) as bar:
        bar(5)
    out, err = capfd.readouterr()
    assert out == ""
    assert "rounds" in err
    assert "reading" in err


def test_a_terminal_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal)
        assert Progress().show is terminal
        assert not Progress(show=False).show


@pytest.mark.parametrize("show", [None, True])
def test_a_process_without_stderr(show: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    monkeypatch.setattr("sys.stderr", None)
    assert list(Progress(show=show).steps("rounds", "abc", 3)) == ["a", "b", "c"]


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_select_passes_it_on(engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = {user: ["a"] for user in range(40)}
    for progress in (True, False):
        select_partitions(data, rho=1, delta=0.1, engine=engine, progress=progress)
        assert ("rounds" in capfd.readouterr().err) is progress

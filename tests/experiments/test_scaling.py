"""Claims on size and on clusters: each verdict from numbers that call for it."""

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

RUN = (
    "users,rows,input_bytes,mechanism,seconds,cpu_seconds,peak_memory,anonymous_memory,spilled,"
    "released\n"
)
EXCHANGES = "rounds,exchanges,paper,bytes\n"
COMMUNICATION = "workers,cores,seconds,rows,input_bytes,shuffled_bytes,crossing_bytes\n"
TIMES = "data,mechanism,{},value,low,high,runs\n"


def decide(folder: Path, claim: str, files: Mapping[str, str]) -> Any:
    """Return the verdict on a claim, by how its text begins, from these files."""
    experiments = {name: {"trouble": ""} for name in files}
    (folder / "run.json").write_text(json.dumps({"experiments": experiments}))
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    results = import_module("evaluation.results").Results(folder)
    claims = import_module("evaluation.claims").CLAIMS
    (found,) = [c for c in claims if c.text.startswith(claim)]
    return found.decide(results)


def runs(*lines: tuple[int, str, float, int]) -> str:
    """Return runs of these users, mechanisms, seconds and items as CSV."""
    return RUN + "".join(
        f"{users},{users * 69},9,{name},{seconds},9,16000000000,9,3000000000,{items}\n"
        for users, name, seconds, items in lines
    )


class TestLargest:
    CLAIM = "From Synthetic_80M"
    USERS = 80_000_000

    @pytest.mark.parametrize(
        ("plain", "sips", "status"),
        [
            (700_000, 1_200_000, "confirmed"),
            (700_000, 1_300_000, "in part"),
            (600_000, 1_300_000, "not confirmed"),
        ],
    )
    def test_yields(self, tmp_path: Path, plain: int, sips: int, status: str) -> None:
        lines = [(self.USERS, "weighted-gaussian", 9.0, plain), (self.USERS, "sips", 9.0, sips)]
        verdict = decide(tmp_path, self.CLAIM, {"largest": runs(*lines)})
        assert verdict.status == status
        assert f"Weighted Gaussian {plain:,} (× {plain / 711_601:.2f})" in verdict.finding
        assert "5.52 billion rows; the paper's table says 4.64" in verdict.finding

    def test_less_than_all_users_say_nothing(self, tmp_path: Path) -> None:
        verdict = decide(tmp_path, self.CLAIM, {"largest": runs((8_000_000, "sips", 9.0, 711_601))})
        assert verdict.status == "not measured here"

    @pytest.mark.parametrize(("seconds", "status"), [(1400, "confirmed"), (1600, "not confirmed")])
    def test_growth(self, tmp_path: Path, seconds: float, status: str) -> None:
        files = {"largest": runs((80_000, "sips", 1.0, 9), (self.USERS, "sips", seconds, 9))}
        verdict = decide(tmp_path, "SIPS and Weighted Gaussian scale", files)
        assert verdict.status == status
        assert f"SIPS × {seconds / 1000:.2f} from 80,000 to 80,000,000 users" in verdict.finding


class TestGreedyOnLargest:
    CLAIM = "DPSU and GW run out of memory"
    USERS = TIMES.format("users") + "synthetic,DPSU,500,1,1,1,3\nsynthetic,GW,500,1,1,1,3\n"

    def test_not_tried(self, tmp_path: Path) -> None:
        files = {"users": self.USERS, "largest": runs((8000, "gw", 1.0, 9))}
        verdict = decide(tmp_path, self.CLAIM, files)
        assert verdict.status == "not measured here"
        assert verdict.finding.endswith("DPSU 500, GW 8,000")

    def test_one_ended(self, tmp_path: Path) -> None:
        files = {"users": self.USERS, "largest": runs((80_000_000, "dpsu", 3600.0, 9))}
        verdict = decide(tmp_path, self.CLAIM, files)
        assert verdict.status == "not confirmed"
        assert verdict.finding == (
            "DPSU with 80,000,000 users takes 3,600 s, 16.0 GB of memory and 3.0 GB of disk; "
            "not tried; most users with which they ran: GW 500"
        )

    def test_gw_on_ten_million(self, tmp_path: Path) -> None:
        files = {"users": TIMES.format("users") + "synthetic,DPSU,2000000,1,1,1,3\n"}
        claim = "DPSU and GW time out"
        assert "GW with 10 million users was not tried" in decide(tmp_path, claim, files).finding
        files["largest"] = runs((80_000_000, "gw", 3600.0, 9))
        assert "GW with 80,000,000 users takes 3,600 s" in decide(tmp_path, claim, files).finding


@pytest.mark.parametrize(("five", "status"), [(14, "confirmed"), (15, "in part")])
def test_exchanges(tmp_path: Path, five: int, status: str) -> None:
    files = {"exchanges": f"{EXCHANGES}1,2,2,9\n5,{five},14,9\n"}
    verdict = decide(tmp_path, "SIPS needs 3(I − 1) + 2", files)
    assert verdict.status == status
    assert verdict.finding.endswith(f"I = 1: 2 (2), I = 5: {five} (14)")


@pytest.mark.parametrize(("seconds", "status"), [(2.3, "confirmed"), (2.5, "not confirmed")])
def test_communication(tmp_path: Path, seconds: float, status: str) -> None:
    lines = f"2,1,{seconds},9,9000000,8000000,4000000\n1,2,2.0,9,9000000,8000000,0\n"
    files = {"communication": COMMUNICATION + lines}
    verdict = decide(tmp_path, "The communication overhead", files)
    assert verdict.status == status
    assert "8.0 MB are shuffled, and 4.0 of them" in verdict.finding


@pytest.mark.parametrize(("seconds", "status"), [(0.9, "confirmed"), (0.8, "not confirmed")])
def test_larger_machines(tmp_path: Path, seconds: float, status: str) -> None:
    lines = f"wiki,DPSU,1,1,1,1,3\nwiki,DPSU,2,{seconds},1,1,3\n"
    files = {"cores": TIMES.format("cores") + lines}
    assert decide(tmp_path, "The sizes of machines", files).status == status


@pytest.mark.parametrize("claim", ["SIPS needs 3(I − 1) + 2", "The communication overhead"])
def test_what_did_not_run_is_not_measured(tmp_path: Path, claim: str) -> None:
    assert decide(tmp_path, claim, {}).status == "not measured here"


def test_a_failed_experiment_leaves_its_old_rows_unread(tmp_path: Path) -> None:
    decide(tmp_path, "SIPS needs 3(I − 1) + 2", {"exchanges": f"{EXCHANGES}1,2,2,9\n"})
    (tmp_path / "run.json").write_text('{"experiments": {"exchanges": {"trouble": "no Java"}}}')
    results = import_module("evaluation.results").Results(tmp_path)
    assert results.rows("exchanges") == []


def test_runs_that_are_there_are_not_done_again(tmp_path: Path) -> None:
    lines = [(8, name, 1.0, 9) for name in ("weighted-gaussian", "sips", "auto")]
    kept = tmp_path / "largest.csv"
    kept.write_text(runs(*lines))
    import_module("evaluation.largest").measure([8], tmp_path)
    assert kept.read_text() == runs(*lines)
    assert [path.name for path in tmp_path.iterdir()] == ["largest.csv"]


def test_a_failed_benchmark_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ChildProcessError, match=r"benchmarks/largest\.py ended with 1"):
        import_module("evaluation.largest").measure([10**12], tmp_path)

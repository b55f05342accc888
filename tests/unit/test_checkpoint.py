"""Runs that are killed and go on: the same release, nothing drawn anew, nothing left behind."""

import fcntl
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spilling import SpillingEngine

from dp_sips import InputError, MemoryEngine, UsageError, select_partitions
from dp_sips.checkpoint import Checkpoint
from dp_sips.ledger import Ledger
from dp_sips.mechanisms import MECHANISMS
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key

RNG = np.random.default_rng(0)
DATA = pa.table(
    {
        "user": RNG.integers(0, 2_000, 30_000),
        "item": [f"item number {n}" for n in RNG.zipf(1.4, 30_000) % 5_000],
    }
)
MANY_ROUNDS = [name for name in MECHANISMS if name != "single"]


class Killed(BaseException):
    """The end of the process, as far as a test can have it."""


def select(data: Any = DATA, **options: Any) -> Any:
    usual: dict[str, Any] = {"user": "user", "item": "item", "epsilon": 2, "delta": 1e-4}
    return select_partitions(data, **usual | options)


def killed_before(number: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Run until the state of this many finished rounds is about to be saved."""
    with monkeypatch.context() as patch:

        def save(self: Checkpoint, rounds: int, contributions: Any) -> None:
            if rounds == number:
                raise Killed
            usual(self, rounds, contributions)

        usual = Checkpoint.save
        patch.setattr(Checkpoint, "save", save)
        with pytest.raises(Killed):
            select(**options)


def rounds_of(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[list[int], Any]:
    """Return which rounds drew noise, and the release."""
    calls: list[int] = []
    with monkeypatch.context() as patch:
        usual = Key.noise_of_round

        def noted(key: Key, index: int) -> Any:
            calls.append(index)
            return usual(key, index)

        patch.setattr(Key, "noise_of_round", noted)
        return calls, select(**options)


CASES: list[dict[str, Any]] = [
    *({"mechanism": name} for name in MANY_ROUNDS),
    {"mechanism": "auto"},
    {"mechanism": "auto", "items_per_user": 20},
    {"mechanism": "cumulative", "min_users": 3},
    {"mechanism": "sips", "min_users": 3},
    {"mechanism": "cumulative", "public_items": ["item number 1", "item number 2"]},
]


@pytest.mark.parametrize("asked", CASES, ids=str)
@pytest.mark.parametrize("engine", [MemoryEngine(), SpillingEngine()], ids=str)
def test_the_release_is_that_of_an_undisturbed_run(
    asked: dict[str, Any],
    engine: MemoryEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"seed": 3, "insecure_test": True, "engine": engine, **asked}
    undisturbed = select(**options)
    rounds = len(undisturbed.plan.rounds)
    folder = tmp_path / "run"
    for number in sorted({1, rounds}):
        killed_before(number, monkeypatch, checkpoint=folder, **options)
    ran, release = rounds_of(monkeypatch, checkpoint=folder, **options)
    assert release.items.equals(undisturbed.items)
    assert release.items.num_rows
    assert ran == [rounds - 1]
    assert not folder.exists()


def test_other_threads_number_items_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"mechanism": "cumulative", "seed": 3, "insecure_test": True}
    undisturbed = select(**options)
    killed_before(3, monkeypatch, checkpoint=tmp_path / "run", engine=MemoryEngine(1), **options)
    resumed = select(checkpoint=tmp_path / "run", engine=MemoryEngine(5), **options)
    assert resumed.items.equals(undisturbed.items)


def test_a_fresh_key_is_kept_for_the_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    killed_before(2, monkeypatch, mechanism="sips", checkpoint=folder)
    files = list(folder.iterdir())
    assert {path.name for path in files} == {"run.json", "state.npz"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    saved = (folder / "run.json").read_bytes()
    killed_before(2, monkeypatch, mechanism="sips", checkpoint=folder)
    assert (folder / "run.json").read_bytes() == saved
    select(mechanism="sips", checkpoint=folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"epsilon": 1}, "budget"),
        ({"mechanism": "weighted-gaussian"}, "mechanism"),
        ({"max_items": 7}, "plan"),
        ({"min_users": 2}, "mechanism"),
        ({"user": "item", "item": "user"}, "columns"),
        ({"nulls": "drop"}, "nulls"),
        ({"seed": 1, "insecure_test": True}, "seed"),
    ],
)
def test_another_plan_is_refused(
    other: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"mechanism": "sips", "checkpoint": tmp_path / "run"}
    killed_before(2, monkeypatch, **options)
    monkeypatch.setattr(MemoryEngine, "load", None)  # it is refused before any data is read
    with pytest.raises(UsageError, match=f"is of a run that differs in its {named}"):
        select(**options | other)


def test_other_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"mechanism": "sips", "checkpoint": tmp_path / "run"}
    killed_before(2, monkeypatch, **options)
    shuffled = DATA.take(RNG.permutation(len(DATA)))
    killed_before(2, monkeypatch, data=shuffled, **options)
    with pytest.raises(InputError, match="is of a run on other data"):
        select(DATA.slice(500), **options)


def test_a_ledger_is_charged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "book.json", epsilon=5, delta=1e-3)
    options = {"mechanism": "sips", "checkpoint": tmp_path / "run", "ledger": ledger}
    killed_before(2, monkeypatch, **options)
    select(**options)
    assert len(ledger.entries) == 1


def test_each_run_in_a_folder_is_booked(tmp_path: Path) -> None:
    """An object that is used again is another release."""
    ledger = Ledger.create(tmp_path / "book.json", epsilon=5, delta=1e-3)
    saved = Checkpoint(tmp_path / "run")
    for _ in range(2):
        select(mechanism="sips", checkpoint=saved, ledger=ledger)
        saved.done()
    assert len(ledger.entries) == 2


def test_a_release_that_a_ledger_refuses_leaves_no_run(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book.json", epsilon=1, delta=1e-3)
    with pytest.raises(UsageError, match="not enough left"):
        select(mechanism="sips", checkpoint=tmp_path / "run", ledger=ledger)
    assert not (tmp_path / "run").exists()
    select(mechanism="sips", checkpoint=tmp_path / "run", ledger=ledger, epsilon=1)


def test_only_a_folder_that_the_run_made_is_removed_unused(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book.json", epsilon=1, delta=1e-3)
    (tmp_path / "run").mkdir(mode=0o700)
    with pytest.raises(UsageError, match="not enough left"):
        select(mechanism="sips", checkpoint=tmp_path / "run", ledger=ledger)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_state_without_its_key_is_of_a_run_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"mechanism": "sips", "checkpoint": tmp_path / "run"}
    killed_before(2, monkeypatch, **options)
    (tmp_path / "run" / "run.json").unlink()
    ran, _ = rounds_of(monkeypatch, **options)
    assert ran == [0, 1, 2]
    assert not (tmp_path / "run").exists()


def test_a_file_that_is_only_called_a_state_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    own = tmp_path / "run" / "state.npz"
    np.savez(own, weather=[1])
    own.chmod(0o600)
    with pytest.raises(InputError, match="is damaged"):
        select(mechanism="sips", checkpoint=tmp_path / "run")
    assert own.exists()


def test_only_what_was_saved_is_removed(tmp_path: Path) -> None:
    """The key goes first: what is left of a half-removed run is no run."""
    saved = Checkpoint(tmp_path / "run")
    select(mechanism="sips", checkpoint=saved)
    (tmp_path / "run" / "items.csv").write_text("the release")
    saved.done()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["items.csv"]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path / "run")
    first.open()
    with pytest.raises(UsageError, match="another run uses it now"):
        select(checkpoint=tmp_path / "run")
    first.close()
    select(checkpoint=tmp_path / "run")


def test_a_folder_that_was_removed_and_made_again_is_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a folder that is no longer there keeps nobody out."""
    first, other, late = (Checkpoint(tmp_path / "run") for _ in range(3))
    first.open()
    usual = fcntl.flock

    def flock(*lock: int) -> None:
        monkeypatch.undo()
        first.close()
        other.open()
        usual(*lock)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UsageError, match="another run uses it now"):
        late.open()
    assert (tmp_path / "run").exists()
    other.close()


def test_an_object_that_is_used_again_leaves_anothers_folder(tmp_path: Path) -> None:
    saved, other = Checkpoint(tmp_path / "run"), Checkpoint(tmp_path / "run")
    select(mechanism="sips", checkpoint=saved)
    saved.done()
    other.open()
    with pytest.raises(UsageError, match="another run uses it now"):
        saved.open()
    assert (tmp_path / "run").exists()
    other.close()


def test_a_folder_is_its_owners_until_the_release_is_safe(tmp_path: Path) -> None:
    """Else another run could have the key while its files are removed."""
    saved = Checkpoint(tmp_path / "run")
    select(mechanism="sips", checkpoint=saved)
    with pytest.raises(UsageError, match="another run uses it now"):
        select(DATA.slice(500), mechanism="sips", checkpoint=tmp_path / "run")
    saved.done()
    other = Checkpoint(tmp_path / "run")
    other.open()
    (tmp_path / "run" / "run.json").write_text("of the other run")
    saved.done()  # again: the folder is no longer its own
    assert other.going_on
    other.close()


@pytest.mark.parametrize("name", ["run.json", "state.npz"])
@pytest.mark.parametrize("content", [b"", b"{}", b"PK torn"])
def test_damaged_files(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"mechanism": "sips", "checkpoint": tmp_path / "run"}
    killed_before(2, monkeypatch, **options)
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(InputError, match="is damaged: remove it"):
        select(**options)


@pytest.mark.parametrize("mode", [0o666, 0o644])
def test_a_key_that_others_could_have_put_there(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"mechanism": "sips", "checkpoint": tmp_path / "run"}
    killed_before(2, monkeypatch, **options)
    (tmp_path / "run" / "run.json").chmod(mode)
    with pytest.raises(UsageError, match="name a folder of your own"):
        select(**options)
    (tmp_path / "run" / "run.json").chmod(0o600)
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(UsageError, match="name a folder of your own"):
        select(**options)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(UsageError, match="checkpoint"):
        select(checkpoint=tmp_path / "link")


def test_folders_that_hold_other_things_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match=r"holds other files, such as 'thesis\.tex'"):
        select(checkpoint=tmp_path)
    with pytest.raises(UsageError, match="checkpoint"):
        select(checkpoint=tmp_path / "thesis.tex")


@pytest.mark.parametrize(
    ("options", "named"),
    [({"engine": "reference"}, "engine='memory'"), ({"hierarchy": True}, "levels")],
)
def test_what_cannot_be_saved(options: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=named):
        select(
            DATA.append_column("other", DATA["item"]),
            item=["item", "other"],
            checkpoint=tmp_path / "run",
            **options,
        )


def test_two_data_sets_have_two_fingerprints(tmp_path: Path) -> None:
    """The sum is over pairs: which user holds which item matters."""
    seen = []

    class Noted(Checkpoint):
        def check(self, contributions: Contributions) -> None:
            super().check(contributions)
            seen.append(contributions.fingerprint())

    for number, owners in enumerate([(1, 1, 2), (1, 2, 2), (2, 2, 1)]):
        rows = pa.table({"user": owners, "item": ["a", "b", "c"]})
        saved = Noted(tmp_path / str(number))
        select(rows, mechanism="single", seed=1, insecure_test=True, checkpoint=saved)
    assert len({*seen}) == 3

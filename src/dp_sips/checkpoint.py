"""Runs that go on after a crash: the key of a run, and what its finished rounds have left.

A run that is begun again on the same folder has the same key, so it draws the same noise; it reads
the data again and goes on after the last finished round. Its release is that of an undisturbed run.

Guarantee: one folder, one release. The key is used for one plan and one data set only: what was
asked is compared before anything is drawn, and the pairs of users and items by a keyed sum. So two
runs on one folder publish the same noisy numbers once, not two draws of them.
Sensitive: all files in the folder (mode 0600): anyone who reads the key can recompute the noise.
"""

import json
import os
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from dp_sips.engines.base import Engine
from dp_sips.errors import InputError, OutputError, UsageError
from dp_sips.ledger import Ledger, as_ledger
from dp_sips.plan import Plan
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key
from dp_sips.sources import Source
from dp_sips.temporaries import create, discard, temporary_path

_RUN, _STATE = "run.json", "state.npz"


class Saved(Protocol):
    """Where the state of a run goes after each of its rounds."""

    @property
    def going_on(self) -> bool:
        """Whether there is a run to go on with."""
        return False

    def key(self, fresh: Key, asked: dict[str, Any]) -> Key:
        """Return the key of the run that is to go on, or a fresh one if none is."""
        del asked
        return fresh

    def begin(self, key: Key, asked: dict[str, Any]) -> None:
        """Save the key of a run, and what is asked of it."""
        del key, asked

    def restore(self, contributions: Contributions) -> int:
        """Bring back what finished rounds have left; return how many there are."""
        del contributions
        return 0

    def save(self, rounds: int, contributions: Contributions) -> None:
        """Save what this many finished rounds have left."""
        del rounds, contributions

    def done(self) -> None:
        """Forget the run."""
        return


class NotSaved(Saved):
    """Nothing is saved."""


@dataclass(frozen=True)
class Checkpoint(Saved):
    """A folder for the state of one run.

    Attributes:
        folder: Made if it is not there; it must be empty, or hold an unfinished run.
    """

    folder: Path

    def __post_init__(self) -> None:
        """Make the folder, or reject it before any data is read."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            others = {path.name for path in self.folder.iterdir()} - {_RUN, _STATE}
        except OSError as error:
            raise UsageError(f"checkpoint {self.folder}: {error.strerror}") from error
        if any(not name.startswith(".dp-sips-") for name in others):
            raise UsageError(
                f"checkpoint {self.folder} holds other files: name an empty or a new folder"
            )

    @property
    def going_on(self) -> bool:
        """Whether there is a run to go on with."""
        return (self.folder / _RUN).exists()

    def key(self, fresh: Key, asked: dict[str, Any]) -> Key:
        """Return the key of the run that is to go on, or a fresh one if none is.

        Raises:
            UsageError: That run was asked for something else.
        """
        if not self.going_on:
            return fresh
        run = json.loads((self.folder / _RUN).read_text())
        found = Key.restored(bytes.fromhex(run["key"]), is_test=run["is_test"])
        asked = _plain(asked) | {"seed": run["asked"]["seed"] if found.replaces(fresh) else "new"}
        for name, value in asked.items():
            if run["asked"].get(name) != value:
                raise UsageError(
                    f"checkpoint {self.folder} is of a run with another {name}: ask for the same "
                    "as then, or name another folder"
                )
        return found

    def begin(self, key: Key, asked: dict[str, Any]) -> None:
        """Save the key of a run, and what is asked of it; one that goes on stays as it is."""
        if not self.going_on:
            asked = _plain(asked) | {"seed": "test" if key.is_test else None}
            run = {"asked": asked, "key": key.saved().hex(), "is_test": key.is_test}
            self._write(_RUN, lambda file: file.write(json.dumps(run).encode()))

    def restore(self, contributions: Contributions) -> int:
        """Bring back what finished rounds have left; return how many there are.

        Raises:
            InputError: The data is not what it was.
        """
        place = self.folder / _STATE
        if not place.exists():
            self.save(0, contributions)
            return 0
        with np.load(place) as state:
            if int(state["input"]) != contributions.fingerprint():
                raise InputError(
                    f"checkpoint {self.folder} is of a run on other data: give it the same data, "
                    "or name another folder"
                )
            contributions.restore({name: state[name] for name in state.files})
            return int(state["rounds"])

    def save(self, rounds: int, contributions: Contributions) -> None:
        """Save what this many finished rounds have left, in place of what was saved before."""
        state = contributions.snapshot() | {
            "rounds": np.uint64(rounds),
            "input": np.uint64(contributions.fingerprint()),
        }
        self._write(_STATE, lambda file: np.savez(file, **state))

    def done(self) -> None:
        """Wipe the folder, and remove it."""
        for path in self.folder.iterdir():
            discard(path)
        self.folder.rmdir()

    def _write(self, name: str, write: Any) -> None:
        """Write a file whole or not at all, for its owner alone."""
        path = temporary_path(self.folder)
        try:
            with create(path) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            path.replace(self.folder / name)
        except OSError as error:
            raise OutputError(f"checkpoint {self.folder}: {error.strerror}") from error
        finally:
            discard(path)


NOT_SAVED: Final = NotSaved()


def saved_in(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, engine: Engine, *, levels: int
) -> Saved:
    """Return where to save a run, if it can be saved."""
    if checkpoint is None:
        return NOT_SAVED
    if not engine.saves_rounds:
        raise UsageError("checkpoint is for engine='memory': choose that, or leave it out")
    if levels:
        raise UsageError("checkpoint is for one selection, and levels are several: leave it out")
    return checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(Path(checkpoint))


def _plain(asked: dict[str, Any]) -> Any:
    return json.loads(json.dumps(asked, default=str))


def what_is_asked(
    plan: Plan, source: Source, ledger: str | os.PathLike[str] | Ledger | None
) -> dict[str, Any]:
    """Return what a run is to do, from its plan to the columns that it reads.

    Public: all of it.
    """
    kinds = zip(source.schema.names, map(str, source.schema.types), strict=True)
    book = None if ledger is None else as_ledger(ledger).path
    return {
        "mechanism": repr(plan.mechanism),
        "budget": asdict(plan.asked),
        "plan": [plan.max_items, plan.table()],
        "columns": [*kinds],
        "nulls": source.nulls,
        "ledger": book,
        "version": version("dp-sips"),
    }

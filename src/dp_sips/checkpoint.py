"""Runs that go on after a crash: the key of a run, and what its finished rounds have left.

A run that is begun again on the same folder has the same key, so it draws the same noise; it reads
the data again and goes on after the last finished round. Its release is that of an undisturbed run.

Guarantee: one folder, one release. The key is used for one plan and one data set only: what was
asked is compared before any data is read, and the pairs of users and items, by a keyed sum, before
anything is drawn. A folder is one process's at a time, and its owner's alone; what it has booked on
a ledger is not booked again. (A copy of the folder, made before data was noted in it, is beyond
this: anyone who copies the key can use it twice.)
Sensitive: all files in the folder (mode 0600): anyone who reads the key can recompute the noise.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from dp_sips.engines.base import Engine
from dp_sips.errors import InputError, OutputError, UsageError
from dp_sips.ledger import Ledger, as_ledger
from dp_sips.plan import Plan
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key
from dp_sips.sources import Source
from dp_sips.temporaries import create, discard, temporary_path

_RUN, _STATE, _TEMPORARY = "run.json", "state.npz", ".dp-sips-"
_PROBE: Final = bytes(1 << 16)

Asks = Callable[[], dict[str, Any]]
"""A deferred call of `what_is_asked`, which takes a while."""


class Saved(Protocol):
    """Where the state of a run goes after each of its rounds."""

    @property
    def going_on(self) -> bool:
        """Whether there is a run to go on with."""
        return False

    def key(self, fresh: Key, asked: Asks) -> Key:
        """Return the key of the run that is to go on, or a fresh one if none is."""
        del asked
        return fresh

    def begin(self, key: Key) -> None:
        """Save the key of a run, and what is asked of it."""
        del key

    def check(self, contributions: Contributions) -> None:
        """Reject data that is not what it was."""
        del contributions

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

    def close(self) -> None:
        """Let others use the folder."""
        return


class NotSaved(Saved):
    """Nothing is saved."""


class Checkpoint(Saved):
    """A folder for the state of one run."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike) or not str(folder):
            raise UsageError(f"checkpoint must be the path of a folder, got {folder!r}")
        self.folder = Path(folder)
        self._lock: int | None = None
        self._removed_if_empty = False
        self._asked: dict[str, Any] = {}

    def open(self) -> None:
        """Make the folder if it is not there, and have it alone.

        Raises:
            UsageError: It cannot be used, or it is not for us.
        """
        try:
            self._take()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise UsageError(f"{self} cannot be used: {self._reason(error)}") from error
            raise

    def _take(self) -> None:
        import fcntl  # not on every system

        self._removed_if_empty = False  # whatever the last run in this object was to remove
        made = not self.folder.exists()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(self._lock), self.folder.lstat()):
            raise BlockingIOError  # the last run removed what is locked, and another made it anew
        self._removed_if_empty = made  # not before: without the lock, it may be another run's
        self._check_files()
        self._try_writing()

    def _try_writing(self) -> None:
        """Write a file, rename it and remove it: what fails here is said before data is read."""
        probe = temporary_path(self.folder)  # a name that may be left behind, if this is killed
        try:
            self._write(probe.name, lambda file: file.write(_PROBE))
        finally:
            discard(probe)

    @staticmethod
    def _reason(error: OSError) -> str:
        if isinstance(error, BlockingIOError | FileNotFoundError):  # it has just removed the folder
            return "another run uses it now"
        if isinstance(error, FileExistsError | NotADirectoryError):
            return "it is a file or a link, and must be a folder"
        return error.strerror or str(error)

    def _check_files(self) -> None:
        """Reject a folder in which others could have put a key, or that holds other things."""
        names = sorted(path.name for path in self.folder.iterdir())
        others = [n for n in names if n not in (_RUN, _STATE) and not n.startswith(_TEMPORARY)]
        if others:
            raise UsageError(
                f"{self} holds other files, such as {others[0]!r}: name an empty or a new folder"
            )
        self._check_owner(self.folder, stat.S_IWGRP | stat.S_IWOTH)
        for name in names:
            self._check_owner(self.folder / name, stat.S_IRWXG | stat.S_IRWXO)

    def _check_owner(self, path: Path, others: int) -> None:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & others:
            raise UsageError(f"{self} is open to other users, or theirs: name a folder of your own")

    def __str__(self) -> str:
        return f"checkpoint {self.folder}"

    @property
    def going_on(self) -> bool:
        """Whether there is a run to go on with."""
        return (self.folder / _RUN).exists()

    def key(self, fresh: Key, asked: Asks) -> Key:
        """Return the key of the run that is to go on, or a fresh one if none is.

        Raises:
            UsageError: That run was asked for something else.
        """
        self._asked = _plain(asked())  # before anything is spent
        if not self.going_on:
            return fresh
        try:
            run = json.loads((self.folder / _RUN).read_text())
            found = Key.restored(bytes.fromhex(run["key"]), is_test=run["is_test"])
            before = dict(run["asked"])
        except (ValueError, LookupError, TypeError) as error:
            raise self._damaged() from error
        others = [name for name, value in self._asked.items() if before.get(name) != value]
        if not found.replaces(fresh):
            others.append("seed")
        if others:
            raise UsageError(
                f"{self} is of a run that differs in its {others[0]}: ask for the same as then, or "
                "name another folder"
            )
        return found

    def begin(self, key: Key) -> None:
        """Save the key of a run, and what is asked of it; one that goes on stays as it is."""
        if self.going_on:
            return
        self._forget_state()
        run = {"asked": self._asked, "key": key.saved().hex(), "is_test": key.is_test}
        self._write(_RUN, lambda file: file.write(json.dumps(run).encode()))

    def _forget_state(self) -> None:
        """Remove the state of a run that ended, and was killed right after it removed its key."""
        if (self.folder / _STATE).exists():
            self._state()  # or say that it is not a state
            (self.folder / _STATE).unlink()
            self._sync()

    def check(self, contributions: Contributions) -> None:
        """Note what the data is, or reject other data than was noted.

        Raises:
            InputError: The data is not what it was.
        """
        if not (self.folder / _STATE).exists():
            self.save(0, contributions)
        elif int(self._state()["input"]) != contributions.fingerprint():
            raise InputError(
                f"{self} is of a run on other data: give it the same data, or name another folder"
            )

    def restore(self, contributions: Contributions) -> int:
        """Bring back what finished rounds have left; return how many there are."""
        state = self._state()
        if int(state["rounds"]):
            contributions.restore(state)
        return int(state["rounds"])

    def _state(self) -> dict[str, Any]:
        try:
            with np.load(self.folder / _STATE) as state:
                found = {name: state[name] for name in state.files}
            return found | {"rounds": found["rounds"], "input": found["input"]}
        except Exception as error:  # a torn file ends in anything
            raise self._damaged() from error

    def _damaged(self) -> InputError:
        return InputError(f"{self} is damaged: remove it, and begin anew (what it booked is spent)")

    def save(self, rounds: int, contributions: Contributions) -> None:
        """Save what this many finished rounds have left, in place of what was saved before."""
        state = contributions.snapshot() | {
            "rounds": np.uint64(rounds),
            "input": np.uint64(contributions.fingerprint()),
        }
        self._write(_STATE, lambda file: np.savez(file, **state))

    def done(self) -> None:
        """Remove what was saved, the key first, and the folder if nothing else is in it.

        A folder that is no longer this run's is left alone.
        """
        if self._lock is None:
            return
        # Without the key, what is left of a half-removed run is no run.
        (self.folder / _RUN).unlink(missing_ok=True)
        self._sync()
        for path in (self.folder / _STATE, *self.folder.glob(f"{_TEMPORARY}*")):
            discard(path)
        self._removed_if_empty = True
        self.close()

    def close(self) -> None:
        """Let others use the folder; remove it if it was made for a run that never began."""
        if self._lock is None:
            return
        if self._removed_if_empty:
            with suppress(OSError):
                self.folder.rmdir()
        os.close(self._lock)
        self._lock = None

    def _write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file whole or not at all, for its owner alone."""
        path = temporary_path(self.folder)
        try:
            with create(path) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            path.replace(self.folder / name)
            self._sync()
        except OSError as error:
            raise OutputError(f"{self} cannot be written: {error.strerror or error}") from error
        finally:
            discard(path)

    def _sync(self) -> None:
        if self._lock is not None:
            os.fsync(self._lock)


NOT_SAVED: Final = NotSaved()


@contextmanager
def saved_in(
    checkpoint: str | os.PathLike[str] | Checkpoint | None, engine: Engine
) -> Iterator[Saved]:
    """Have a place to save a run, if it can be saved; what is there is removed in the end.

    A caller who gives a `Checkpoint` says when the release is safe, and has the folder until then.
    """
    if checkpoint is None:
        yield NOT_SAVED
        return
    if not engine.saves_rounds:
        raise UsageError("checkpoint is for engine='memory': choose that, or leave it out")
    saved = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    saved.open()
    try:
        yield saved
    except BaseException:
        saved.close()
        raise
    if saved is not checkpoint:
        saved.done()


def what_is_asked(
    plan: Plan, source: Source, ledger: str | os.PathLike[str] | Ledger | None
) -> dict[str, Any]:
    """Return what a run is to do, from its plan to the columns that it reads.

    Public: all of it.
    """
    kinds = zip(source.schema.names, map(str, source.schema.types), strict=True)
    counts = sorted(map(repr, (plan.bounds.public_counts or {}).items()))
    return {
        "mechanism": repr(plan.mechanism),
        "budget": asdict(plan.asked),
        "plan": [plan.max_items, plan.min_users, plan.table()],
        "histogram": hashlib.blake2b("\n".join(counts).encode()).hexdigest(),
        "columns": [*kinds],
        "nulls": source.nulls,
        "ledger": None if ledger is None else as_ledger(ledger).path,
        "version": version("dp-sips"),
    }


def _plain(asked: dict[str, Any]) -> Any:
    return json.loads(json.dumps(asked, default=str))

"""A ledger: one budget for many releases about the same users, in a file that people can read.

A ledger has a total, (ε, δ). Every release is booked once its columns are found and before its rows
are loaded, and refused if all entries together could exceed the total (`mechanisms/composition.py`
says what they spend together). Booked first, because what a run does with the data may show even if
it ends without a release: an error, its time, a file that was written just before a crash. So a
failed run has spent its entry. Nothing is booked where a test seed is used: such a release has no
guarantee that could be counted.

Guarantee: all releases that were booked are (ε, δ)-DP together, for one user with all of their rows
in all of the data. By default ε and δ add up, and whatever is asked next may depend on what earlier
releases showed. Composition is tight with `planned=True`: then mechanisms and parameters of all
releases must not depend on that.
Public: the whole file.

The file is replaced, never changed: the new one is written under another name, synced and renamed,
so a crash leaves the old or the new one. A lock on a file beside it (`.NAME.lock`) is held from
reading to renaming, so releases that run at the same time are booked one after the other.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Self

from dp_sips.errors import InputError, OutputError, UsageError
from dp_sips.mechanisms.base import Asked, EpsilonDelta, asked_for
from dp_sips.mechanisms.composition import Composition, Spending
from dp_sips.output import check_output, write_files
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.guarantee import Guarantee, shown

_KIND: Final = "dp-sips ledger"
_FORMAT: Final = 1


@dataclass(frozen=True)
class Ledger:
    """A ledger in a file; `Ledger.create` makes a new one.

    Attributes:
        path: The file.
        purpose: What the releases that are booked through this object are for, in your words.
    """

    path: str | os.PathLike[str]
    purpose: str | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        budget: Budget | None = None,
        planned: bool = False,
        purpose: str | None = None,
    ) -> Self:
        """Make a new file, with the total that all releases together may spend.

        Args:
            path: The file; it must not exist.
            epsilon: ε of the total.
            delta: δ of the total.
            budget: In place of both: the total is the (ε, 2δ)-DP that a release of this budget, ρ
                and δ, has by the paper's conversion.
            planned: Whether mechanisms and parameters of all releases are independent of what
                earlier ones show, as in a plan made beforehand. Then composition is tight;
                otherwise ε and δ add up.
            purpose: What the releases that are booked through this object are for.
        """
        total = asked_for(epsilon, delta, None, budget).implied()
        if Path(path).exists():
            raise UsageError(f"{path} exists: book on it as it is, or name another file")
        check_output(path)
        held = {
            "kind": _KIND,
            "format": _FORMAT,
            "created": now(),
            "total": asdict(total),
            "planned": bool(planned),
            "entries": [],
        }
        _write(Path(path), held, overwrite=False)
        return cls(path, purpose)

    @property
    def entries(self) -> list[dict[str, Any]]:
        """What was booked, in order."""
        return list(self._read()["entries"])

    def summary(self) -> dict[str, Any]:
        """Return the total, what is spent of it, and what is left.

        `spent` is ε at the total's δ, and δ at the total's ε; of each, `left` is the rest.
        """
        held = self._read()
        total, whole = _total(held), _composition(held)
        spent = {"epsilon": whole.epsilon(total.delta), "delta": whole.delta(total.epsilon)}
        return {"total": asdict(total), "spent": spent, "left": self._left(held)}

    def check(self, spent: Guarantee) -> None:
        """Refuse a release that `book` would refuse now; nothing is booked."""
        self._with(Spending.of(spent), self._read())

    def book(
        self, spent: Guarantee, asked: Asked, what: dict[str, Any], run_id: str | None = None
    ) -> None:
        """Add an entry, or refuse it, before the release that it is for touches data.

        A run with an id is booked once, however often it is begun again.

        Guarantee: the file has the entry, on disk, when this returns.
        """
        own = Spending.of(spent)
        self._read()  # or say that there is no such ledger, and leave no lock beside it
        with self._locked():
            held = self._read()
            if run_id is not None and run_id in (entry.get("run") for entry in held["entries"]):
                return
            whole = self._with(own, held)
            held["entries"].append(
                {
                    "number": len(held["entries"]) + 1,
                    "run": run_id,
                    "time": now(),
                    "purpose": self.purpose,
                    "what": what,
                    "asked": asdict(asked),
                    "spent": {"epsilon": own.epsilon, "delta": own.delta},
                    "spent_so_far": _so_far(whole, _total(held)),
                    "software": f"dp-sips {version('dp-sips')}",
                    "accounting": _accounting(own),
                }
            )
            _write(Path(self.path), held, overwrite=True)

    def _with(self, own: Spending, held: dict[str, Any]) -> Composition:
        """Return what is spent with one more release, if that is within the total."""
        total, whole = _total(held), _composition(held, own)
        if whole.delta(total.epsilon) > total.delta:
            raise UsageError(self._refusal(own, total, held))
        return whole

    def _refusal(self, own: Spending, total: EpsilonDelta, held: dict[str, Any]) -> str:
        left = self._left(held)
        return (
            f"{self.path} has not enough left for a release of ({own.epsilon:g}, "
            f"{shown(own.delta):g})-DP: of its total, ({total.epsilon:g}, {total.delta:g}), about "
            f"{left['epsilon']:.3g} of epsilon and {left['delta']:.3g} of delta are left; ask for "
            "less, or make a new ledger for other users"
        )

    def _left(self, held: dict[str, Any]) -> dict[str, float]:
        total, whole = _total(held), _composition(held)
        spent = {"epsilon": whole.epsilon(total.delta), "delta": whole.delta(total.epsilon)}
        return {name: max(0.0, getattr(total, name) - value) for name, value in spent.items()}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait until nobody else books, and keep others waiting."""
        import fcntl  # not on every system: without ledgers, nothing needs it

        place = Path(self.path).resolve()
        try:
            lock = os.open(place.with_name(f".{place.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OutputError(f"{self.path} cannot be locked: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Any]:
        try:
            held = json.loads(Path(self.path).read_text("utf-8"))
        except FileNotFoundError as error:
            raise UsageError(
                f"there is no ledger {self.path}: create it, with dp-sips ledger create or "
                "dp_sips.Ledger.create"
            ) from error
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{self.path} is not a ledger: it is not JSON") from error
        return _checked(held, self.path)


def as_ledger(given: "str | os.PathLike[str] | Ledger") -> Ledger:
    """Return the ledger that a parameter names."""
    if isinstance(given, Ledger):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Ledger(given)
    raise UsageError(f"ledger must be a path or a Ledger, got {type(given).__name__}")


def _checked(held: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reject what is no ledger, before anything is booked on it."""
    if not isinstance(held, dict) or held.get("kind") != _KIND:
        raise InputError(f"{path} is not a ledger: create one with dp-sips ledger create")
    if held.get("format") != _FORMAT:
        raise InputError(f"{path} is a ledger of format {held.get('format')!r}, and this is 1")
    try:
        _composition(held)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} is a damaged ledger: restore it from a copy") from error
    return held


def _total(held: dict[str, Any]) -> EpsilonDelta:
    return EpsilonDelta(**held["total"])


def _composition(held: dict[str, Any], *more: Spending) -> Composition:
    booked = [_spending(entry) for entry in held["entries"]]
    return Composition((*booked, *more), _total(held).epsilon, held["planned"] is not True)


def _so_far(whole: Composition, total: EpsilonDelta) -> dict[str, float]:
    """Return two statements that are each true by itself, for people who read the file."""
    return {
        "epsilon_at_total_delta": whole.epsilon(total.delta),
        "delta_at_total_epsilon": whole.delta(total.epsilon),
    }


def _accounting(own: Spending) -> dict[str, Any]:
    """Return the numbers by which later entries compose with this one."""
    return {
        "gaussian": own.gaussian,
        "epsilons": [epsilon for epsilon, _ in own.curve],
        "deltas": [delta for _, delta in own.curve],
    }


def _spending(entry: dict[str, Any]) -> Spending:
    """Undo `_accounting`."""
    spent, numbers = entry["spent"], entry["accounting"]
    if min(spent["epsilon"], spent["delta"]) < 0:
        raise ValueError
    gaussian = numbers["gaussian"]
    if gaussian is not None:
        rho, own, loss, tail = map(float, gaussian)
        gaussian = (rho, own, loss, tail)
    return Spending(
        float(spent["epsilon"]),
        float(spent["delta"]),
        gaussian,
        tuple(zip(map(float, numbers["epsilons"]), map(float, numbers["deltas"]), strict=True)),
    )


def _write(path: Path, held: dict[str, Any], *, overwrite: bool) -> None:
    """Replace the file, with each list of numbers on one line."""
    text = json.dumps(held, indent=2, ensure_ascii=False)
    short = re.sub(r"\[[^\[\]{}\"]*\]", lambda found: " ".join(found[0].split()), text)
    content = short.encode() + b"\n"
    write_files({path: lambda sink: sink.write(content)}, overwrite=overwrite)


def now() -> str:
    """Return the time, UTC.

    A release has that before any row is read, as how long a run takes may tell more.
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

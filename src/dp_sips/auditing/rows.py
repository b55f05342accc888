"""What an audit has found, as rows, text and JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Final

from dp_sips.auditing.statistics import FALSE_ALARM

EXACT: Final = "exact"
SAMPLED: Final = "black box"

# Sums of a few hundred products, each as good as the probabilities themselves.
_RELATIVE: Final = 1e-9
_ABSOLUTE: Final = 1e-12


@dataclass(frozen=True)
class Row:
    """The largest δ that was found for one mechanism and one family of neighbours.

    Attributes:
        mechanism: Its name.
        engine: What it ran on.
        method: "exact", or "black box".
        family: Which neighbours.
        epsilon: ε as asked.
        delta: δ as asked.
        max_items: Δ0.
        at: The ε at which δ was found.
        found: The true δ, or by black box a δ that is exceeded unless the bounds failed.
        promised: The δ that is promised there.
        trials: How many neighbours were enumerated, or how many trials were made of each.
    """

    mechanism: str
    engine: str
    method: str
    family: str
    epsilon: float
    delta: float
    max_items: int
    at: float
    found: float
    promised: float
    trials: int

    @property
    def tightness(self) -> float:
        """What was found, relative to the promise: what is left of 1 is left on the table."""
        return self.found / self.promised

    @property
    def violated(self) -> bool:
        """Whether the promise is broken."""
        slack = _RELATIVE * self.promised + _ABSOLUTE if self.method == EXACT else 0.0
        return self.found > self.promised + slack

    def facts(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {**asdict(self), "tightness": self.tightness, "violated": self.violated}


def worst(rows: Sequence[Row]) -> Row:
    """Return the row that comes nearest to its promise, or breaks it most."""
    return max(rows, key=lambda row: row.tightness)


@dataclass(frozen=True)
class Audit:
    """What an audit has found.

    Attributes:
        rows: The largest δ by mechanism, parameters, method and family.
        quick: Whether it was a quick one.
        seconds: How long it took.
        false_alarm: The probability, at most, that a sound build is reported by black box.
    """

    rows: tuple[Row, ...]
    quick: bool
    seconds: float
    false_alarm: float = FALSE_ALARM

    @property
    def violations(self) -> tuple[Row, ...]:
        """The rows that break a promise."""
        return tuple(row for row in self.rows if row.violated)

    @property
    def passed(self) -> bool:
        """Whether no promise is broken."""
        return not self.violations

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(self.facts(), indent=2, ensure_ascii=False)

    def facts(self) -> dict[str, Any]:
        """Return everything as a dict."""
        return {
            "version": version("dp-sips"),
            "passed": self.passed,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "false_alarm": self.false_alarm,
            "rows": [row.facts() for row in self.rows],
        }

    def table(self) -> str:
        """Return a line for each mechanism, method and family, with what comes nearest."""
        lines = [_HEADINGS, *(_line(row) for row in self.nearest())]
        return "\n".join((*lines, "", self.verdict))

    def nearest(self) -> list[Row]:
        """Return the row that comes nearest to its promise, of each mechanism and family."""
        groups: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.mechanism, row.method, row.family), []).append(row)
        return [worst(rows) for rows in groups.values()]

    @property
    def verdict(self) -> str:
        """One sentence about all of it."""
        if self.violations:
            names = ", ".join(sorted({row.mechanism for row in self.violations}))
            return f"{len(self.violations)} promises are broken: {names}."
        return (
            f"No promise is broken. A sound build is reported by chance with a probability of at "
            f"most {self.false_alarm:g}; {self.seconds:.0f} s."
        )

    def report(self) -> str:
        """Return an HTML page with the table and a figure, complete in itself."""
        from dp_sips.auditing.page import page

        return page(self)

    def __str__(self) -> str:
        return self.table()


_HEADINGS: Final = (
    f"{'mechanism':<20}{'method':<11}{'neighbours':<22}{'ε':>6}{'δ':>8}{'Δ0':>9}{'at ε':>7}"
    f"{'δ found':>11}{'promised':>11}{'share':>8}{'trials':>9}"
)


def _line(row: Row) -> str:
    broken = "  BROKEN" if row.violated else ""
    return (
        f"{row.mechanism:<20}{row.method:<11}{row.family:<22}{row.epsilon:>6g}{row.delta:>8.3g}"
        f"{row.max_items:>9}"
        f"{row.at:>7.3g}{row.found:>11.3g}{row.promised:>11.3g}{row.tightness:>8.1%}"
        f"{row.trials:>9}{broken}"
    )

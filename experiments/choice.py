"""How well `auto` chooses: what each of its two branches releases, and how often it takes which.

    python experiments/choice.py --data DIR [--runs 3] [--out docs/choice] [names …]

For each data set and budget: the length of lists as the look sees it (s), what matching releases on
average, what cumulative evidence releases (means of --runs), how often 1,000 looks choose matching,
and the share of the better branch's items that the choice loses. DIR holds Parquet files with the
columns user and item.
"""

import argparse
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import items_released

from dp_sips import MemoryEngine, plan
from dp_sips.mechanisms.auto import SizeLook
from dp_sips.privacy.contributions import Contributions
from dp_sips.privacy.noise import Key, Purpose
from dp_sips.progress import Progress
from dp_sips.sources import open_source

_MUCH = 2
"""Per cent."""

_TITLE = """\
# How `auto` chooses

For each data set and budget: how long lists are, as the look sees it (s), what matching releases on
average, what cumulative evidence releases, the look's proxy for that, how often 1,000 looks take
matching, and what share of the better one's items the choice loses (`experiments/choice.py`).
"""

BUDGETS = ((1.765, 4.96e-5), (1.0, 1e-5), (1.0, 1e-6), (0.5, 1e-6), (4.0, 1e-8))
LOOKS = 1000


class Remembered:
    """Contributions whose measures are worked out once, however many looks are taken."""

    def __init__(self, contributions: Contributions) -> None:
        self._contributions = contributions
        self._known: dict[Any, Any] = {}

    def measure_users(self, measure: Any) -> int:
        """Return the sum over users."""
        return int(self._once(measure, self._contributions.measure_users, measure))

    def measure_items(self, weights: Any, measure: Any) -> int:
        """Return the sum over items; `weights` says how to get their weights."""
        how, *arguments = weights

        def measured() -> int:
            return self._contributions.measure_items(how(*arguments), measure)

        return int(self._once((how.__name__, *arguments, measure), measured))

    def settle(self, seats: int, spare: int, laps: int, max_items: int) -> Any:
        """Say that matching's weights are wanted."""
        return self._contributions.settle, seats, spare, laps, max_items

    def weigh(self, max_items: int, step_bits: int = 30) -> Any:
        """Say that a round's weights are wanted."""
        return self._contributions.weigh, max_items, step_bits

    def _once(self, name: Any, work: Any, *arguments: Any) -> Any:
        if name not in self._known:
            self._known[name] = work(*arguments)
        return self._known[name]


def rows(path: Path, runs: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each budget."""
    source = open_source(path, user="user", item="item")
    bounds = plan(epsilon=1, delta=1e-5).bounds
    loaded = MemoryEngine().load(source, bounds, Key.fresh(), Progress(show=False))
    for epsilon, delta in BUDGETS:
        asked = {"epsilon": epsilon, "delta": delta}
        look = plan("auto", **asked).look  # type: ignore[arg-type]
        assert isinstance(look, SizeLook)
        seen: Any = Remembered(loaded)
        yields, proxy, length = look.measure(seen)
        others = [items_released(path, {"mechanism": "cumulative", **asked}) for _ in range(runs)]
        evidence = statistics.fmean(others)
        taken = statistics.fmean(
            look.choose(seen, Key.fresh().scrambler(Purpose.LOOK)).mechanism == look.short.mechanism
            for _ in range(LOOKS)
        )
        expected = taken * yields + (1 - taken) * evidence
        yield {
            "data": path.stem,
            "ε, δ": f"{epsilon:g}, {delta:g}",
            "s": f"{length:.2f}",
            "matching": f"{yields:,.0f}",
            "cumulative": f"{evidence:,.0f}",
            "proxy": f"{proxy:,.0f}",
            "takes matching": f"{taken:.1%}",
            "loses": f"{1 - expected / max(yields, evidence):.1%}",
        }
    loaded.close()


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of Parquet files")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write .md")
    parser.add_argument("names", nargs="*", help="data sets; all in the folder unless named")
    options = parser.parse_args()
    names = options.names or sorted(path.stem for path in options.data.glob("*.parquet"))
    lines: list[str] = []
    for name in names:
        for row in rows(options.data / f"{name}.parquet", options.runs):
            if not lines:
                lines += ["| " + " | ".join(row) + " |", "|---" * len(row) + "|"]
                print(*lines, sep="\n")
            lines.append("| " + " | ".join(row.values()) + " |")
            print(lines[-1], flush=True)
    losses = [float(line.split("|")[-2].strip(" %")) for line in lines[2:]]
    lines.append(
        f"\nMean loss {statistics.fmean(losses):.1f} %; above {_MUCH} % in "
        f"{sum(loss > _MUCH for loss in losses)} of {len(losses)} cases; "
        f"largest {max(losses, default=math.nan):.1f} %."
    )
    print(lines[-1])
    if options.out:
        options.out.with_suffix(".md").write_text("\n".join((_TITLE, *lines)) + "\n")


if __name__ == "__main__":
    main()

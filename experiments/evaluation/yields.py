"""The experiments that count items: accuracy, and what it depends on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from measuring import mean_items

from evaluation import iterated, printed
from evaluation.contenders import How, accuracy_contenders, contenders, sips
from evaluation.points import Point
from evaluation.printed import MAIN, Setting
from evaluation.scale import Scale
from evaluation.sources import Source, choose, without_repeats

RATIOS: Final = (0.05, 0.1, 0.2, 1 / 3, 0.4, 0.6, 0.8, 1.0)
MAX_ITEMS: Final = (5, 10, 25, 50, 100, 150, 200, 300)
ITERATIONS: Final = (1, 2, 3)
PARAMETERS_ON: Final = ("reddit", "finance", "imdb", "wikipedia", "jeopardy")
"""Where r and Δ0 are varied: four of the paper's five, and more short texts instead of Twitter."""


def accuracy(sources: list[Source], scale: Scale, cache: Path) -> Iterator[Point]:
    """Every mechanism on every data set at the paper's main setting."""
    for source in sources:
        for name, how in accuracy_contenders().items():
            yield _point(source, name, MAIN.epsilon, how, scale)
            if name == "GW":
                once = replace(source, path=without_repeats(source, cache))
                yield _point(once, "GW, deduplicated", MAIN.epsilon, how, scale)


def against_epsilon(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """The paper's four and ours, along its first conversion table."""
    for setting in printed.VARY_EPS:
        yield from _at(setting, setting.epsilon, choose(sources, "reddit", "imdb"), scale)


def against_delta(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """The paper's four and ours, along its second conversion table."""
    for setting in printed.VARY_DELTA:
        yield from _at(setting, setting.delta, choose(sources, "reddit"), scale)


def against_ratio(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """SIPS against r, how a round's budget relates to the next one's."""
    for source in choose(sources, *PARAMETERS_ON):
        for r in RATIOS:
            yield _point(source, "SIPS", r, sips(ratio=r), scale)


def against_max_items(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """SIPS against Δ0, how many items of a user count."""
    for source in choose(sources, *PARAMETERS_ON):
        for most in MAX_ITEMS:
            yield _point(source, "SIPS", most, sips(max_items=most), scale)


def against_rounds(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """SIPS against I, how many rounds it has; with Δ0 = 50, as in the paper's table."""
    for source in choose(sources, "reddit"):
        for rounds in printed.ROUNDS:
            how = sips(rounds=rounds, max_items=50)
            yield _point(source, "SIPS", rounds, how, scale)


def against_iterations(sources: list[Source], scale: Scale) -> Iterator[Point]:
    """DPSU against how often it runs, on what it has not released yet."""
    for source in choose(sources, *PARAMETERS_ON):
        for rounds in ITERATIONS:
            items = iterated.mean_items(source.path, rounds, scale.seeds)
            yield Point(source.name, "DPSU", rounds, items)


def _at(setting: Setting, x: float, sources: Sequence[Source], scale: Scale) -> Iterator[Point]:
    for source in sources:
        for name, how in contenders(setting).items():
            yield _point(source, name, x, how, scale)


def _point(source: Source, mechanism: str, x: float, how: How, scale: Scale) -> Point:
    return Point(source.name, mechanism, x, mean_items(source.path, how, scale.seeds))

"""The pictures that explain: SIPS's histograms round by round, and what can run in parallel."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import NDArray

import dp_sips
from evaluation import style

_USERS, _ITEMS = 330, 24
_RHO, _DELTA = 0.1, 1e-5


def histograms() -> Figure:
    """The paper's Figure 1: Weighted Gaussian, and the three rounds of SIPS, on skewed data."""
    holds = _example()
    noise = np.random.default_rng(5).standard_normal((4, _ITEMS))
    figure, panels = style.new_figure(4, height=2.9, width=10)
    (whole,) = dp_sips.plan("weighted-gaussian", rho=_RHO, delta=_DELTA, max_items=_ITEMS).rounds
    _histogram(panels[0], holds, whole, noise[0], before=None, title="Weighted Gaussian")
    before: NDArray[np.float64] | None = None
    rounds = dp_sips.plan("sips", rho=_RHO, delta=_DELTA, max_items=_ITEMS).rounds
    for i, step in enumerate(rounds):
        title = f"SIPS, round {i + 1}"
        noisy, released = _histogram(
            panels[i + 1], holds, step, noise[i + 1], before=before, title=title
        )
        before = np.where(released, 0, noisy)
        holds = holds & ~released
    panels[0].set_ylabel("noisy weight")
    top = max(axes.get_ylim()[1] for axes in panels)
    for axes in panels:
        axes.set(ylim=(0, top), xticks=[], xlabel="items")
    return figure


def _example() -> NDArray[np.bool_]:
    """Return who holds what: the k-th item is held by about 0.95/k^0.85 of the users."""
    chances = 0.95 / np.arange(1, _ITEMS + 1) ** 0.85
    return np.random.default_rng(1).random((_USERS, _ITEMS)) < chances


def _histogram(
    axes: Any,
    holds: NDArray[np.bool_],
    step: Any,
    noise: NDArray[np.float64],
    *,
    before: NDArray[np.float64] | None,
    title: str,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw one round: each user gives 1/√(its items) to each of them; noise; threshold."""
    weights = (holds / np.sqrt(np.maximum(holds.sum(axis=1, keepdims=True), 1))).sum(axis=0)
    there = holds.any(axis=0)
    noisy = np.where(there, weights + step.sigma * noise, 0)
    released = there & (noisy >= step.threshold)
    places = np.arange(_ITEMS)
    colours = [style.BLUE if yes else "#CCCCCC" for yes in released]
    axes.bar(places, np.maximum(noisy, 0), 0.8, color=colours)
    if before is not None:
        outline = np.maximum(before, 0)
        axes.bar(places, outline, 0.8, fill=False, edgecolor=style.ORANGE, linewidth=1)
    axes.axhline(step.threshold, color=style.BLACK, linestyle="--", linewidth=1)
    axes.set_title(f"{title}: {released.sum()} released", fontsize=10)
    axes.grid(visible=False, axis="x")
    return noisy, released


def parallelism() -> Figure:
    """The paper's parallelism diagram: who must wait for whom."""
    figure, panels = style.new_figure(3, height=3.0, width=10)
    _parallel_rounds(panels[0], 1)
    _parallel_rounds(panels[1], 3)
    _chain(panels[2], 6)
    titles = (
        "Weighted Gaussian: one parallel step",
        "SIPS: a few parallel steps",
        "DPSU, GW: users take turns",
    )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, fontsize=10)
        axes.set(xlim=(0, 10), ylim=(0, 6))
        axes.axis("off")
    return figure


def _parallel_rounds(axes: Any, rounds: int) -> None:
    """Parts of the data, side by side; each step is done on all at once, then they meet."""
    width = 9.0 / rounds
    for step in range(rounds):
        left = 0.6 + step * width
        parts = [(left, 0.5 + 1.25 * part) for part in range(4)]
        meet = (left + width * 0.5, 2.37)
        for x, y in parts:
            _box(axes, x, y, style.SKY, 0.62)
            _arrow(axes, (x + 0.65, y + 0.4), (meet[0], meet[1] + 0.4))
        _box(axes, *meet, style.BLUE, 0.62)
        if step < rounds - 1:
            for part in range(4):
                _arrow(axes, (meet[0] + 0.62, meet[1] + 0.4), (left + width, 0.9 + 1.25 * part))


def _chain(axes: Any, users: int) -> None:
    """One user after the other, each waiting for the histogram of the one before."""
    width = 9.2 / users
    for turn in range(users):
        x = 0.4 + turn * width
        _box(axes, x, 3.6, style.SKY, 0.75)
        _box(axes, x, 1.6, style.ORANGE, 0.75)
        _arrow(axes, (x + 0.37, 3.55), (x + 0.37, 2.45))
        if turn < users - 1:
            _arrow(axes, (x + 0.78, 2.0), (x + width, 2.0))
    axes.text(0.4, 4.7, "users", fontsize=9)
    axes.text(0.4, 0.9, "the histogram after each of them", fontsize=9)


def _box(axes: Any, x: float, y: float, colour: str, width: float) -> None:
    shape = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch((x, y), width, 0.8, boxstyle=shape, fc=colour, ec="none"))


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, lw=0.8))

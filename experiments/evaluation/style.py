"""One look for all figures: colours that all eyes can tell apart, and a marker for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

mpl.use("agg")

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, RED, PINK, GREY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#767676"
"""Okabe and Ito's colours, and a grey."""

LINES: Final = {
    "Weighted Gaussian": (GREY, "v", "-"),
    "SIPS": (BLUE, "^", "-"),
    "DPSU": (ORANGE, "s", "--"),
    "GW": (PINK, "D", "--"),
    "auto (ours)": (RED, "o", "-"),
}
"""Colour, marker and dashes of each mechanism; dashes are for those in which users take turns."""

OTHERS: Final = tuple(
    zip((BLUE, RED, GREEN, ORANGE, PINK, GREY, SKY, BLACK), "o^sDvP*X", ["-"] * 8, strict=True)
)
"""For lines that are data sets."""

_SETTINGS: Final = {
    "figure.dpi": 100,
    "savefig.dpi": 144,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.markersize": 5,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "dp-sips",
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this look for as long as the block takes."""
    with mpl.rc_context(_SETTINGS):
        yield


def new_figure(panels: int = 1, height: float = 3.6, width: float = 8.4) -> tuple[Figure, Any]:
    """Return a figure and its panels, side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write PNG and SVG, and return the SVG; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", metadata={"Software": None})
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    return (folder / f"{name}.svg").read_text(encoding="utf-8")

"""The mechanisms as the paper runs them, and ours at the same privacy."""

from typing import Any, Final

import dp_sips
from evaluation.printed import MAIN, Setting

How = dict[str, Any]

BUFFER: Final = 5
"""Of DPSU and GW, in deviations or scales of their noise. The paper does not print its own."""

GW_MAIN: Final = {"epsilon": 1.7, "delta": 8.1142e-5}
"""GW's parameters in the paper's accuracy table, which are not those of its conversion table."""

PAPERS: Final = ("Weighted Gaussian", "SIPS", "DPSU", "GW")
OURS: Final = "auto (ours)"


def contenders(setting: Setting) -> dict[str, How]:
    """Return the paper's four and ours, at one line of a conversion table."""
    zcdp = {"rho": setting.rho, "delta": setting.delta_cdp, "max_items": 100}
    dp = {"epsilon": setting.epsilon, "delta": setting.delta}
    return {
        "Weighted Gaussian": {"mechanism": "weighted-gaussian", **zcdp},
        "SIPS": {"mechanism": "sips", **zcdp},
        "DPSU": {"mechanism": dp_sips.Dpsu(buffer=BUFFER), **zcdp},
        "GW": {"mechanism": dp_sips.Gw(buffer=BUFFER, ties="rows"), **dp},
        OURS: {"mechanism": "auto", **dp},
    }


def accuracy_contenders() -> dict[str, How]:
    """Return those of the accuracy table, but for GW on data without repeats."""
    main = contenders(MAIN)
    dp = {"epsilon": MAIN.epsilon, "delta": MAIN.delta}
    return {
        **{name: main[name] for name in PAPERS},
        "GW": main["GW"] | GW_MAIN,
        "SIPS, exact accounting": {"mechanism": "sips", **dp},
        "SIPS rule (ours)": {"mechanism": "sips-rule", **dp},
        OURS: main[OURS],
    }


def sips(rounds: int = 3, ratio: float = 1 / 3, max_items: int = 100) -> How:
    """Return SIPS at the main setting, with some of its parameters changed."""
    return {
        "mechanism": dp_sips.Sips(rounds=rounds, ratio=ratio),
        "rho": MAIN.rho,
        "delta": MAIN.delta_cdp,
        "max_items": max_items,
    }

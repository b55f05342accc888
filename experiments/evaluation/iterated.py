"""DPSU several times over: what a run released leaves the data of the next, as in SIPS."""

from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from measuring import Estimate

import dp_sips
from dp_sips.mechanisms.sips import geometric_shares
from evaluation.contenders import BUFFER
from evaluation.printed import MAIN

RATIO: Final = 1 / 3
"""r, a round's budget relative to the next one's, as the paper has it for SIPS."""


def mean_items(path: Path, rounds: int, seeds: tuple[int, ...]) -> Estimate:
    """Return how many items DPSU releases in some rounds, which share one budget."""
    return Estimate.mean([_items(path, rounds, seed) for seed in seeds])


def _items(path: Path, rounds: int, seed: int) -> int:
    pairs, released = pq.read_table(path, columns=["user", "item"]), 0
    shares = geometric_shares(rounds, RATIO)
    for number, share in enumerate(shares):
        found = _round(pairs, share / sum(shares), seed * len(shares) + number)
        pairs = pairs.filter(pc.invert(pc.is_in(pairs["item"], value_set=found)))
        released += len(found)
    return released


def _round(pairs: Any, share: float, seed: int) -> Any:
    """Return what one run releases with its share of ρ and δ."""
    selection = dp_sips.select_partitions(
        pairs,
        user="user",
        item="item",
        mechanism=dp_sips.Dpsu(buffer=BUFFER),
        rho=share * MAIN.rho,
        delta=share * MAIN.delta_cdp,
        max_items=100,
        seed=seed,
        insecure_test=True,
        progress=False,
    )
    return selection.items["item"].combine_chunks()

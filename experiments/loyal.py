"""An item that everybody holds beside items of their own: how often does matching miss it?

    python experiments/loyal.py [--runs 100]

With loyal users, as `matching` runs, and without.
"""

import argparse
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from measuring import items_released

from dp_sips.privacy import bounding
from dp_sips.privacy.arrays import Bools

CASES = ((500, 1), (1000, 4), (5000, 4))
"""Users, and how many items each has of their own."""

HOW = {"mechanism": "matching", "epsilon": 1.0, "delta": 1e-5}


def main() -> None:
    """Print the share of runs that miss it, for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| users | items of their own | missed | without loyal users |\n|---|---|---|---|")
    for users, own in CASES:
        shares = [_missed(_crowd(users, own), runs)]
        with patch.object(bounding, "loyal", _nobody):
            shares.append(_missed(_crowd(users, own), runs))
        print(f"| {users:,} | {own} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")


def _crowd(users: int, own: int) -> pa.Table:
    """Return users who share the last item; all numbers have the same length."""
    first = 10**6
    mine = first + np.arange(users * own).reshape(users, own)
    items = np.hstack((mine, np.full((users, 1), first + users * own)))
    return pa.table({"user": np.repeat(np.arange(users), own + 1), "item": items.ravel()})


def _missed(pairs: pa.Table, runs: int) -> float:
    return sum(items_released(pairs, HOW, seed) == 0 for seed in range(runs)) / runs


def _nobody(users: np.ndarray, sizes: np.ndarray) -> Bools:
    del sizes
    return np.zeros(len(users), dtype=np.bool_)


if __name__ == "__main__":
    main()

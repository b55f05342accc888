"""Checks of what callers give: numbers, and the names that other libraries give to parameters."""

import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Final

from dp_sips.errors import UsageError, did_you_mean

_UNITS: Final = {"B": 1} | {
    f"{letter}{suffix}B": base**power
    for suffix, base in (("", 1000), ("I", 1024))
    for power, letter in enumerate("KMGT", start=1)
}
_SIZE: Final = re.compile(
    rf"(\d{{1,18}})|(\d{{1,18}}(?:\.\d+)?) *({'|'.join(_UNITS)})", re.IGNORECASE
)


def check_whole(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return a whole number as an int; True is not one."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least or (most is not None and int(value) > most):  # type: ignore[call-overload]
        asked = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} must be a whole number {asked}, got {value!r}")
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_bytes(name: str, value: object) -> int:
    """Return a size of at least one byte: a whole number, or text such as "8 GB" or "8000000"."""
    if not isinstance(value, str):
        return check_whole(name, value)
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise UsageError(
            f'{name} must be a size such as "8 GB", or a number of bytes, got {value!r}'
        )
    whole, number, unit = found.groups()
    return check_whole(name, int(whole) if whole else int(float(number) * _UNITS[unit.upper()]))


def check_number(name: str, value: object) -> float:
    """Return a real number as a float; True is not one, and neither is "1e-6"."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise UsageError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_finite(name: str, value: object) -> float:
    """Return a real number as a float; it must be finite."""
    number = check_number(name, value)
    if not math.isfinite(number):
        raise UsageError(f"{name} must be finite, got {value}")
    return number


def check_positive(name: str, value: object) -> float:
    """Return a real number as a float; it must be positive and finite."""
    number = check_number(name, value)
    if not 0 < number < math.inf:
        raise UsageError(f"{name} must be positive and finite, got {value}")
    return number


OURS: Final = (
    "user", "item", "epsilon", "delta", "rho", "budget", "ledger", "max_items", "items_per_user",
    "public_items", "min_users", "mechanism", "engine", "memory_limit", "spill_folder",
    "checkpoint", "hierarchy", "nulls", "types", "seed", "insecure_test", "progress",
)  # fmt: skip

_MEANT: Final = {
    "user": (
        "user_id", "user_column", "privacy_unit", "privacy_unit_column", "privacy_id",
        "privacy_id_column", "privacy_id_extractor", "id_column", "unit",
    ),
    "item": (
        "items", "partition", "partition_key", "partition_column", "partition_extractor",
        "partition_columns", "group", "groups", "group_by", "keys", "key", "keyset", "by",
    ),
    "epsilon": ("eps", "total_epsilon", "privacy_budget", "budget_epsilon"),
    "delta": ("total_delta", "budget_delta"),
    "max_items": (
        "max_partitions_contributed", "max_partitions", "max_groups_contributed", "max_groups",
        "max_contributions", "max_contrib", "max_rows_per_id", "l0_sensitivity", "delta0",
        "partitions_per_user", "max_user_contribution", "contribution_bound",
    ),
    "mechanism": ("strategy", "partition_selection_strategy", "method", "algorithm"),
    "public_items": ("public_partitions", "known_items", "public_keys"),
    "min_users": ("pre_threshold", "min_privacy_units_per_group", "min_count"),
    "engine": ("backend",),
    "seed": ("random_state", "random_seed", "rng"),
    "mechanism=Sips(rounds=…)": ("rounds", "iterations", "num_iters", "n_iter"),
    "mechanism=Sips(ratio=…)": ("ratio", "r", "privacy_ratio"),
    "types": ("text", "dtype", "dtypes", "schema", "column_types", "schema_overrides"),
}  # fmt: skip

FOREIGN: Final = {foreign: ours for ours, names in _MEANT.items() for foreign in names}
"""Each known foreign name, and ours."""


def refuse_unknown(unknown: Mapping[str, Any], more: tuple[str, ...] = ()) -> None:
    """Raise an error for the first unknown parameter, naming the one that was meant.

    `more` are the parameters that a function has besides `OURS`.
    """
    for name in unknown:
        if name in FOREIGN:
            raise UsageError(f"unknown parameter {name!r}: here it is called {FOREIGN[name]}")
        if name in OURS:
            raise UsageError(
                f"{name} is a parameter of select_partitions, and not of this function"
            )
        raise UsageError(f"unknown parameter {name!r}: {did_you_mean(name, (*OURS, *more))}")

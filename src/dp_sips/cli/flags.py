"""Flags that several commands share, and what becomes of them."""

import argparse
from dataclasses import fields
from fractions import Fraction
from typing import Any, Final

from dp_sips.cli.parser import Parser
from dp_sips.errors import UsageError
from dp_sips.mechanisms import MECHANISMS, Gw, Mechanism, Sips, find_mechanism

_MEANS: Final = {"rounds": Sips.name, "ratio": Sips.name, "histogram": Gw.name}
"""The mechanism that a parameter alone means."""


_MAX_ITEMS: Final = (
    "how many items of a user count; more are left out at random (default: 250, and 100 for most "
    "other mechanisms)"
)


def add_privacy(parser: Parser, max_items: str = _MAX_ITEMS) -> None:
    """Add the budget: --epsilon or --rho, with --delta, and --max-items, with what it means."""
    group = parser.add_argument_group("privacy (give --epsilon or --rho, and --delta)")
    group.add_argument("--epsilon", type=float, metavar="E", help="ε of (ε, δ)-DP")
    group.add_argument("--rho", type=float, metavar="R", help="ρ of δ-approximate ρ-zCDP")
    group.add_argument(
        "--delta", type=float, metavar="D", help="δ: well below 1 / (number of users)"
    )
    group.add_argument("--max-items", type=int, metavar="N", help=max_items)
    group.add_argument(
        "--min-users",
        type=int,
        default=1,
        metavar="M",
        help="release nothing that fewer than M users hold, whatever the noise (default: 1)",
    )


def planning(args: argparse.Namespace, chosen: str | Mechanism) -> dict[str, Any]:
    """Return what a plan takes from the flags, besides its mechanism and --max-items."""
    return {
        "epsilon": args.epsilon,
        "delta": args.delta,
        "rho": args.rho,
        "items_per_user": args.items_per_user if chosen == "auto" else None,
        "min_users": args.min_users,
    }


def add_types(group: argparse._ActionsContainer) -> None:
    """Add --type, which may be repeated."""
    group.add_argument(
        "--type",
        dest="types",
        action="append",
        metavar="COLUMN=TYPE",
        help="read a column as string, int, date, timestamp, bool or decimal(10,2); may be "
        "repeated. Without it, CSV is text, and JSON values are what they are",
    )


def types(args: argparse.Namespace) -> dict[str, str]:
    """Return the types that --type declares."""
    declared: dict[str, str] = {}
    for word in args.types or ():
        column, sign, kind = word.rpartition("=")
        if not sign or not column:
            raise UsageError(f"--type {word}: write COLUMN=TYPE, as --type zip=string")
        if column in declared:
            raise UsageError(f"--type names the column {column!r} twice: name each column once")
        declared[column] = kind
    return declared


def add_mechanism(parser: Parser) -> None:
    """Add the mechanism and its parameters."""
    group = parser.add_argument_group("mechanism (dp-sips mechanisms lists all)")
    group.add_argument(
        "--mechanism",
        metavar="NAME",
        help="auto: matching where people have few items each, otherwise cumulative, by a private "
        "look at the data (default); "
        "sips: the paper's; weighted-gaussian: its baseline of one round; and others",
    )
    group.add_argument(
        "--items-per-user",
        type=int,
        metavar="M",
        help="roughly how many items a person has, if that is public: auto then does not look at "
        "the data",
    )
    group.add_argument("--rounds", type=int, metavar="N", help="rounds of sips (default: 3)")
    group.add_argument(
        "--ratio",
        type=_ratio,
        metavar="R",
        help="a round's budget relative to the next one's, for sips (default: 1/3)",
    )
    group.add_argument(
        "--buffer",
        type=float,
        metavar="B",
        help="an item is full at the threshold plus B times the noise, for dpsu, policy-laplace, "
        "gw, mad and mad2r",
    )


def mechanism(name: str | None, args: argparse.Namespace, **more: Any) -> str | Mechanism:
    """Return the mechanism that the flags, and more of its parameters, describe."""
    flags = {flag: getattr(args, flag) for flag in ("rounds", "ratio", "buffer")} | more
    given = {flag: value for flag, value in flags.items() if value is not None}
    if not given:
        return name or "auto"
    chosen = name or next((_MEANS[flag] for flag in given if flag in _MEANS), "auto")
    if chosen != "auto":
        find_mechanism(chosen)  # or say what is meant
    for flag in given:
        owners = [kind.name for kind in MECHANISMS.values() if flag in _parameters(kind)]
        if chosen not in owners:
            raise UsageError(
                f"--{flag} is for {_either(owners)}, and this is {chosen!r}: "
                "leave it out, or choose another --mechanism"
            )
    return MECHANISMS[chosen](**given)


def _parameters(kind: type[Any]) -> set[str]:
    return {field.name for field in fields(kind)}


def _either(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _ratio(word: str) -> float:
    """Read 0.3 and 1/3."""
    try:
        return float(Fraction(word) if "/" in word else word)
    except ZeroDivisionError as error:
        raise argparse.ArgumentTypeError(f"{word} divides by zero") from error
    except (ValueError, OverflowError) as error:
        message = f"{word!r} is neither a number nor a fraction like 1/3"
        raise argparse.ArgumentTypeError(message) from error

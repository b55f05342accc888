"""Flags that several commands share, and what becomes of them."""

import argparse
from fractions import Fraction
from typing import Any

from dp_sips.cli.parser import Parser
from dp_sips.errors import UsageError
from dp_sips.mechanisms import Mechanism, Sips


def add_privacy(parser: Parser) -> None:
    """Add the budget: --epsilon or --rho, with --delta, and --max-items."""
    group = parser.add_argument_group("privacy (give --epsilon or --rho, and --delta)")
    group.add_argument("--epsilon", type=float, metavar="E", help="ε of (ε, δ)-DP")
    group.add_argument("--rho", type=float, metavar="R", help="ρ of δ-approximate ρ-zCDP")
    group.add_argument(
        "--delta", type=float, metavar="D", help="δ: well below 1 / (number of users), as 1e-6"
    )
    group.add_argument(
        "--max-items",
        type=int,
        metavar="N",
        help="how many items of a user count; more are left out at random "
        "(default: 300, and 100 for the paper's mechanisms)",
    )


def add_mechanism(parser: Parser) -> None:
    """Add the mechanism and the parameters of sips."""
    group = parser.add_argument_group("mechanism")
    group.add_argument(
        "--mechanism",
        metavar="NAME",
        help="auto: the one that finds the most, cumulative or with few --max-items sips-rule "
        "(default); "
        "sips: the paper's; weighted-gaussian: its baseline of one round",
    )
    group.add_argument("--rounds", type=int, metavar="N", help="rounds of sips (default: 3)")
    group.add_argument(
        "--ratio",
        type=_ratio,
        metavar="R",
        help="a round's budget relative to the next one's, for sips (default: 1/3)",
    )


def mechanism(name: str | None, args: argparse.Namespace) -> str | Mechanism:
    """Return the mechanism that the flags describe; its parameters alone mean sips."""
    given: dict[str, Any] = {
        key: value
        for key, value in (("rounds", args.rounds), ("ratio", args.ratio))
        if value is not None
    }
    if not given:
        return name or "auto"
    if name not in {None, Sips.name}:
        raise UsageError(
            f"--{next(iter(given))} is for the mechanism sips, and this is {name!r}: "
            "leave one of them out"
        )
    return Sips(**given)


def _ratio(word: str) -> float:
    """Read 0.3 and 1/3."""
    if "/" not in word:
        return float(word)
    try:
        return float(Fraction(word))
    except ZeroDivisionError as error:
        raise argparse.ArgumentTypeError(f"{word} divides by zero") from error

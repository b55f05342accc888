"""dp-sips convert: between (ρ, δ) and (ε, δ), by both accountings."""

import argparse
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit, emit_json
from dp_sips.errors import UsageError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.privacy.budget import Accounting, Budget

_EXPLANATION = """\
A release spends a budget: it is δ-approximate ρ-zCDP, the paper's statement. Here
that δ, the chance that an item of one user alone is released, is --threshold-delta.
The same release is (ε, δ)-DP, with a δ of its own above it: --delta.
Give all but what you look for; --epsilon and --delta are enough for ρ, with half of
δ for the thresholds.

examples:
  what is δ?  dp-sips convert --rho 0.1 --threshold-delta 1e-5 --epsilon 1.765
  what is ε?  dp-sips convert --rho 0.1 --threshold-delta 1e-5 --delta 4.96e-5
  what is ρ?  dp-sips convert --epsilon 1.765 --delta 4.96e-5 --threshold-delta 1e-5

Together with --rho and --epsilon, --delta means --threshold-delta, as it does in
dp-sips select --rho R --delta D."""

GAUSSIAN: Final = [name for name, kind in MECHANISMS.items() if kind.noise == "Gaussian"]
"""The mechanisms whose releases have the exact Gaussian curve."""

_TRUE_OF: Final[dict[Accounting, str]] = {
    "zcdp": "by the paper's conversion, true of every release with this budget",
    "gaussian": f"by the exact Gaussian curve, true of {', '.join(GAUSSIAN)}",
}


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXPLANATION
    for flag, meaning in (
        ("--rho", "ρ of δ-approximate ρ-zCDP"),
        ("--threshold-delta", "δ of δ-approximate ρ-zCDP"),
        ("--epsilon", "ε of (ε, δ)-DP"),
        ("--delta", "δ of (ε, δ)-DP"),
    ):
        parser.add_argument(flag, type=float, metavar=flag.lstrip("-")[0].upper(), help=meaning)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Print what was looked for."""
    flags = ("rho", "threshold_delta", "epsilon", "delta")
    given = {name: getattr(args, name) for name in flags if getattr(args, name) is not None}
    if given.keys() == {"rho", "delta", "epsilon"}:
        given["threshold_delta"] = given.pop("delta")
    wanted, words, answer = _question(given)
    answers = {accounting: answer(accounting) for accounting in _TRUE_OF}
    if args.json:
        emit_json({"given": given, wanted: answers})
    else:
        emit("\n".join((words, *(_row(wanted, *pair) for pair in answers.items()))))


Answer = Callable[[Any], float]


def _question(given: dict[str, float]) -> tuple[str, str, Answer]:
    """Return the name of what is looked for, the question in words, and how to answer it."""
    match given:
        case {"rho": rho, "threshold_delta": own, "epsilon": epsilon, **rest} if not rest:
            spent = Budget(rho, own)
            words = f"{_budget(spent)} is ({epsilon:g}, δ)-DP, where δ is"
            return "delta", words, lambda by: spent.delta_at(epsilon, by)
        case {"rho": rho, "threshold_delta": own, "delta": delta, **rest} if not rest:
            spent = Budget(rho, own)
            words = f"{_budget(spent)} is (ε, {delta:g})-DP, where ε is"
            return "epsilon", words, lambda by: spent.epsilon(delta, by)
        case {"epsilon": epsilon, "delta": delta, **rest} if "rho" not in rest:
            own = rest.get("threshold_delta", delta / 2)
            words = (
                f"A release is ({epsilon:g}, {delta:g})-DP, with {own:g} of δ for the thresholds,\n"
                f"if it is {own:g}-approximate ρ-zCDP, where ρ is at most"
            )
            return "rho", words, lambda by: _rho(epsilon, delta, own, by)
    if given.keys() == {"rho", "delta"}:
        raise UsageError(
            "--threshold-delta is missing: give the part of --delta that is for the thresholds, as "
            f"--threshold-delta {given['delta'] / 2:g}"
        )
    shown = ", ".join("--" + name.replace("_", "-") for name in given) or "nothing"
    raise UsageError(
        "give --rho, --threshold-delta and --epsilon to get δ; --rho, --threshold-delta and "
        f"--delta to get ε; or --epsilon and --delta to get ρ; got {shown}"
    )


def _rho(epsilon: float, delta: float, own: float, by: Any) -> float:
    return Budget.from_epsilon(epsilon, delta, threshold_delta=own, accounting=by).rho


def _budget(spent: Budget) -> str:
    return f"A release that is {spent.delta:g}-approximate {spent.rho:g}-zCDP"


def _row(wanted: str, accounting: Accounting, value: float) -> str:
    return f"  {_rounded(value, up=wanted != 'rho'):<12} {_TRUE_OF[accounting]}"


def _rounded(value: float, *, up: bool) -> str:
    """Round to six digits, conservatively."""
    context = Context(prec=6, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{float(context.create_decimal(Decimal(value))):.6g}"

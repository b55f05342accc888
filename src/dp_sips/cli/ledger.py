"""dp-sips ledger: make a ledger, or show what was spent of one."""

import argparse
import math
from typing import Any

from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit, emit_json
from dp_sips.errors import UsageError
from dp_sips.ledger import Ledger
from dp_sips.privacy.guarantee import shown

_EXAMPLES = """\
A ledger is a file with one budget for many releases about the same users. Releases with
--ledger FILE are booked before their rows are loaded, and refused if the total could be
exceeded. ε and δ add up. If mechanisms and parameters of all releases are planned
beforehand, and do not depend on what earlier releases show, create the ledger with
--planned: composition is then tight, and more fits into the total.

examples:
  dp-sips ledger create budget.json --epsilon 3 --delta 1e-5
  dp-sips select visits.csv --user id --item city --epsilon 1 --delta 1e-6 --ledger budget.json
  dp-sips ledger budget.json"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.usage = (
        "dp-sips ledger FILE [--json]\n"
        "       dp-sips ledger create FILE --epsilon E --delta D [--planned]"
    )
    parser.add_argument("words", nargs="*", metavar="FILE", help="the ledger; create makes it")
    parser.add_argument("--epsilon", type=float, metavar="E", help="create: ε of the total")
    parser.add_argument("--delta", type=float, metavar="D", help="create: δ of the total")
    parser.add_argument(
        "--planned",
        action="store_true",
        help="create: no parameter of a release depends on earlier releases; composition is tight",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Make a ledger, or show one."""
    match args.words:
        case ["create", path]:
            _create(path, args)
        case [path] if path != "create":
            _refuse_totals(args)
            _show(Ledger(path), as_json=args.json)
        case _:
            raise UsageError("name one FILE: dp-sips ledger FILE, or dp-sips ledger create FILE")


def add_ledger(parser: Parser) -> None:
    """Add --ledger and --purpose."""
    group = parser.add_argument_group("ledger (dp-sips ledger create FILE makes one)")
    group.add_argument(
        "--ledger",
        metavar="FILE",
        help="book the release before its rows are loaded, and refuse it if all releases that are "
        "booked there could exceed the total. A failed run stays booked; a test seed books nothing",
    )
    group.add_argument("--purpose", metavar="TEXT", help="what the release is for")


def ledger(args: argparse.Namespace) -> Ledger | None:
    """Return the ledger that the flags name."""
    if args.ledger is None and args.purpose is not None:
        raise UsageError("--purpose is for --ledger: give both, or leave it out")
    return None if args.ledger is None else Ledger(args.ledger, args.purpose)


def _create(path: str, args: argparse.Namespace) -> None:
    if args.epsilon is None or args.delta is None:
        raise UsageError("--epsilon and --delta are missing: they are the total of the ledger")
    made = Ledger.create(path, epsilon=args.epsilon, delta=args.delta, planned=args.planned)
    _show(made, as_json=args.json)


def _refuse_totals(args: argparse.Namespace) -> None:
    if args.epsilon is not None or args.delta is not None or args.planned:
        raise UsageError("a total is given once: dp-sips ledger create FILE --epsilon E --delta D")


def _show(ledger: Ledger, *, as_json: bool) -> None:
    found = ledger.summary()
    if as_json:
        emit_json(found | {"entries": ledger.entries})
        return
    total, spent, left = found["total"], found["spent"], found["left"]
    lines = [
        f"{ledger.path}: ({total['epsilon']:g}, {total['delta']:g})-DP in all",
        *(_line(entry) for entry in ledger.entries),
        f"Spent: epsilon {_shown(spent['epsilon'])} at delta {total['delta']:g},",
        f"       delta {_shown(spent['delta'])} at epsilon {total['epsilon']:g}.",
        f"Left: about {left['epsilon']:.4g} of epsilon, and {left['delta']:.4g} of delta.",
    ]
    emit("\n".join(lines))


def _shown(value: float) -> str:
    return f"{shown(value):g}" if math.isfinite(value) else "unlimited"


def _line(entry: dict[str, Any]) -> str:
    spent, what = entry["spent"], entry["what"]
    purpose = f"  {entry['purpose']}" if entry["purpose"] else ""
    return (
        f"{entry['number']:>4}  {entry['time']}  ({spent['epsilon']:g}, {shown(spent['delta']):g})"
        f"  {what['release']} of {', '.join(what['items'])} by {what['user']}, "
        f"{what['mechanism']}{purpose}"
    )

"""dp-sips mechanisms: a line for each of them."""

import argparse
from typing import Any, Final

from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit, emit_json
from dp_sips.mechanisms import MECHANISMS, Mechanism
from dp_sips.mechanisms.auto import CHOICES

_EXAMPLES: Final = """\
examples:
  dp-sips mechanisms
  dp-sips mechanisms --json
  dp-sips plan dpsu --epsilon 1 --delta 1e-6"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Print all mechanisms."""
    if args.json:
        emit_json([_facts(kind) for kind in MECHANISMS.values()])
        return
    lines = [f"{kind.name:<19}{_way(kind):<12}{kind.noise:<10}{kind.good_for}"
             for kind in MECHANISMS.values()]  # fmt: skip
    auto = "\n".join(f"  {name:<17}{when}" for name, when in CHOICES)
    emit("\n".join((*lines, "", "auto, the default, is", auto)))


def _way(kind: type[Mechanism]) -> str:
    return "sequential" if kind.sequential else "parallel"


def _facts(kind: type[Mechanism]) -> dict[str, Any]:
    return {
        "name": kind.name,
        "parallel": not kind.sequential,
        "noise": kind.noise,
        "good_for": kind.good_for,
        "default_max_items": kind.default_max_items,
        "auto": dict(CHOICES).get(kind.name),
    }

"""dp-sips audit: does this build keep its promises, and how tight are they?"""

import argparse
from pathlib import Path
from typing import Final

import dp_sips
from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit, say
from dp_sips.output import check_output, write_files

_EXPLANATION: Final = """\
Neighbours are two data sets of which one has an additional user. The table has the
largest δ that was found between neighbours that are hard to protect, beside the δ
that is promised at the same ε.

exact      the true δ, from every possible release and its probability, with the
           engine's own sets and weights and the verdicts' own thresholds and tables
black box  a δ that the engine exceeds, from many runs; a sound build is reported by
           chance with a probability of at most 1e-8, for the whole audit

The exit code is 1 if a promise is broken.

examples:
  dp-sips audit --quick
  dp-sips audit --mechanism sips --epsilon 1 --delta 1e-6 --report audit.html
  dp-sips audit --mechanism gw --mechanism matching --engine reference --quick --json"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXPLANATION
    parser.add_argument(
        "--mechanism",
        action="append",
        metavar="NAME",
        help="audit this one; may be repeated (default: all)",
    )
    parser.add_argument(
        "--engine",
        default="memory",
        choices=("memory", "reference", "spark"),
        help="what runs it (default: memory)",
    )
    parser.add_argument(
        "--epsilon", type=float, default=1.0, metavar="E", help="ε, as you will use it (default: 1)"
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=1e-5,
        metavar="D",
        help="δ, as you will use it (default: 1e-5); black boxes are run with 0.05, too",
    )
    parser.add_argument(
        "--max-items",
        type=int,
        metavar="N",
        help="how many items of a user count (default: each mechanism's)",
    )
    parser.add_argument("--quick", action="store_true", help="do what can be done in a minute")
    parser.add_argument("--json", action="store_true", help="print all rows as JSON")
    parser.add_argument("--report", metavar="FILE", help="write an HTML page with a figure")


def run(args: argparse.Namespace) -> int:
    """Print the table, and return 1 if a promise is broken."""
    if args.report:
        check_output(args.report, overwrite=True)
    found = dp_sips.audit(
        args.mechanism,
        engine=args.engine,
        epsilon=args.epsilon,
        delta=args.delta,
        max_items=args.max_items,
        quick=args.quick,
    )
    if args.report:
        page = found.report().encode()
        write_files({Path(args.report): lambda sink: sink.write(page)})
        say(f"the report is in {args.report}")
    emit(found.to_json() if args.json else found.table())
    return 0 if found.passed else 1

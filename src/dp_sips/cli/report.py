"""dp-sips report: a page about a release, from its certificate."""

import argparse
from pathlib import Path

from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit
from dp_sips.output import check_output
from dp_sips.pages.facts import read_certificate
from dp_sips.pages.released import check_file
from dp_sips.pages.report import report_page, write_report
from dp_sips.sources.finding import find_files

_EXAMPLES = """\
The page is one HTML file that loads nothing from elsewhere. It computes the rounds again from the
public parameters in the certificate, and says whether they agree.

examples:
  dp-sips report released.json
  dp-sips report released.json --items released.parquet -o report.html"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.add_argument("certificate", metavar="CERTIFICATE", help="what --certificate wrote")
    parser.add_argument("--items", metavar="FILE", help="show the released items of this file, too")
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="where the page goes (default: the certificate's name, with .html)",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace an existing page")
    parser.add_argument("--quiet", action="store_true", help="do not say where the page is")


def run(args: argparse.Namespace) -> None:
    """Read the certificate, and write the page."""
    source = Path(args.certificate)
    path = Path(args.output or source.with_suffix(".html"))
    facts = read_certificate(source)
    inputs = [source, *(find_files([args.items]) if args.items else [])]
    check_output(path, overwrite=args.force, inputs=inputs)
    if args.items:
        check_file(Path(args.items), facts)
    page = report_page(facts.certificate, facts.recomputed(), args.items)
    write_report(path, page, overwrite=args.force)
    if not args.quiet:
        emit(str(path))

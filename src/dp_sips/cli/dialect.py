"""How CSV is written, where that is not as usual."""

import argparse
from typing import Any

from dp_sips.sources.csv_files import CsvFiles


def add_dialect(group: argparse._ActionsContainer) -> None:
    """Add --delimiter, --no-header and --encoding."""
    group.add_argument(
        "--delimiter",
        metavar="C",
        help="what stands between the fields of CSV (default: a tab in .tsv files, else a comma); "
        "\\t is a tab. With this flag and the next two, files may have any suffix",
    )
    group.add_argument(
        "--no-header", action="store_true", help="CSV without names: columns are called 1, 2, …"
    )
    group.add_argument("--encoding", metavar="NAME", help="of CSV (default: utf-8)")


def dialect(args: argparse.Namespace) -> dict[str, Any]:
    """Return what was said about the way CSV is written."""
    said = {
        "delimiter": None if args.delimiter is None else args.delimiter.replace("\\t", "\t"),
        "header": False if args.no_header else None,
        "encoding": args.encoding,
    }
    return {name: value for name, value in said.items() if value is not None}


def data(args: argparse.Namespace) -> list[str] | CsvFiles:
    """Return what is to be read."""
    said = dialect(args)
    return CsvFiles(args.input, **said) if said else list(args.input)

"""dp-sips generate: the paper's synthetic data."""

import argparse
from pathlib import Path

from dp_sips.cli.parser import Parser
from dp_sips.cli.signals import end_at_signals
from dp_sips.cli.streams import say
from dp_sips.errors import UsageError
from dp_sips.formats import format_of
from dp_sips.output import check_output, write_files
from dp_sips.progress import Progress
from dp_sips.synthetic import check_counts, write_synthetic

_EXPLANATION = """\
Each user draws the size of its set from a Pareto distribution (scale 10, shape 1.16)
and each item from a zeta distribution (1.1). The columns are user and item; there are
about 60 rows a user, and memory stays small at any size. The paper's own data set has
80 million users.

examples:
  dp-sips generate --users 100000 -o synthetic.parquet
  dp-sips select synthetic.parquet --user user --item item --rho 0.1 --delta 1e-5 | head"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXPLANATION
    parser.add_argument("--users", type=int, metavar="N", help="how many users")
    parser.add_argument("-o", "--output", metavar="FILE", help="the .parquet file to write")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another seed, other data (default: 0)"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no summary")


def run(args: argparse.Namespace) -> None:
    """Write the file."""
    if args.users is None or args.output is None:
        missing = "--users N" if args.users is None else "-o FILE.parquet"
        raise UsageError(f"{missing} is missing (dp-sips generate --help explains)")
    check_counts(args.users, args.seed)
    path = Path(args.output)
    if format_of(path) != "parquet":
        raise UsageError(f"synthetic data is written as Parquet: name a .parquet file, not {path}")
    check_output(path, overwrite=args.force)
    progress = Progress(show=False if args.quiet else None)
    write_files(
        {path: lambda sink: write_synthetic(sink, args.users, args.seed, progress)},
        overwrite=args.force,
    )
    end_at_signals()
    if not args.quiet:
        say(f"Wrote the data of {args.users:,} generated users to {path}.")

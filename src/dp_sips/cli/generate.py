"""dp-sips generate: the paper's synthetic data."""

import argparse
from pathlib import Path

from dp_sips.cli.parser import Parser
from dp_sips.cli.signals import end_at_signals
from dp_sips.cli.streams import say
from dp_sips.errors import UsageError
from dp_sips.folders import check_folder, write_folder
from dp_sips.formats import format_of
from dp_sips.output import check_output, write_files
from dp_sips.progress import Progress
from dp_sips.synthetic import check_counts, write_synthetic
from dp_sips.synthetic_files import NAMES, check_division, write_synthetic_files

_EXPLANATION = """\
Each user draws the size of its set from a Pareto distribution (scale 10, shape 1.16)
and each item from a zeta distribution (1.1). The columns are user and item; there are
about 60 rows a user, and memory stays small at any size. The paper's own data set has
80 million users.

With --files N, FOLDER gets N files, written on all cores and much faster. What a user has
then depends on the seed and on the user's number alone: fewer users are the beginning of
more, in as many files as you like. One file has other data under the same seed.

examples:
  dp-sips generate --users 100000 -o synthetic.parquet
  dp-sips generate --users 80000000 --files 100 -o synthetic     (15 GB)
  dp-sips select synthetic.parquet --user user --item item --rho 0.1 --delta 1e-5 | head"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXPLANATION
    parser.add_argument("--users", type=int, metavar="N", help="how many users")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the .parquet file to write; the folder, with --files",
    )
    parser.add_argument("--files", type=int, metavar="N", help="write N files into a folder")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="with --files: cores to use (default: all)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another seed, other data (default: 0)"
    )
    parser.add_argument("--force", action="store_true", help="replace what is there under the name")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no summary")


def run(args: argparse.Namespace) -> None:
    """Write the file, or the files of a folder."""
    if args.users is None or args.output is None:
        missing = "--users N" if args.users is None else "-o FILE.parquet"
        raise UsageError(f"{missing} is missing (dp-sips generate --help explains)")
    progress = Progress(show=False if args.quiet else None)
    (_write_file if args.files is None else _write_folder)(Path(args.output), args, progress)
    end_at_signals()
    if not args.quiet:
        files = "" if args.files is None else f", in {args.files:,} files"
        say(f"Wrote the data of {args.users:,} generated users to {args.output}{files}.")


def _write_file(path: Path, args: argparse.Namespace, progress: Progress) -> None:
    if args.threads is not None:
        raise UsageError("--threads is for many files: add --files N, or leave --threads out")
    check_counts(args.users, args.seed)
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a .parquet file, or say how many with --files")
    if format_of(path) != "parquet":
        raise UsageError(f"synthetic data is written as Parquet: name a .parquet file, not {path}")
    check_output(path, overwrite=args.force)
    write_files(
        {path: lambda sink: write_synthetic(sink, args.users, args.seed, progress)},
        overwrite=args.force,
    )


def _write_folder(path: Path, args: argparse.Namespace, progress: Progress) -> None:
    numbers = (args.users, args.seed, args.files, args.threads)
    check_division(*numbers)
    if path.suffix == ".parquet":
        raise UsageError(f"with --files, -o names a folder: leave .parquet out of {path}")
    check_folder(path, holding=NAMES, overwrite=args.force)
    write_folder(
        path,
        lambda folder: write_synthetic_files(folder, *numbers, progress=progress),
        holding=NAMES,
        overwrite=args.force,
    )

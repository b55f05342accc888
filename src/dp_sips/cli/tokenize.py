"""dp-sips tokenize: texts become words or n-grams, one row for each."""

import argparse

from dp_sips.cli.dialect import add_dialect, data, dialect
from dp_sips.cli.flags import add_types, types
from dp_sips.cli.parser import Parser
from dp_sips.cli.piped import inputs
from dp_sips.cli.signals import end_at_signals
from dp_sips.cli.streams import say
from dp_sips.errors import UsageError
from dp_sips.output import check_output
from dp_sips.sources.addresses import is_remote
from dp_sips.sources.finding import find_any_files, find_files
from dp_sips.text import ngrams
from dp_sips.tokens import check_tokens_path, write_tokens

_EXPLANATION = """\
As in the paper, URLs and symbols are removed, and words are NLTK's word tokens in lower
case. FILE has a row for each word, with its text's user, under the names of the two
columns. With --ngrams 3, sequences of two and
of three words of a row are added, joined by a space. FILE is as sensitive as INPUT.
Needs nltk: pip install 'dp-sips[text]'.

examples:
  dp-sips tokenize docs.csv --user author --text body -o tokens.parquet
  dp-sips select tokens.parquet --user author --item body --epsilon 1 --delta 1e-6"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXPLANATION
    parser.usage = "dp-sips tokenize INPUT… --user U --text T -o FILE.parquet [--ngrams N] …"
    parser.add_argument(
        "input", nargs="*", metavar="INPUT", help="Parquet, CSV, JSON lines or Arrow: files, "
        "folders or quoted globs; - for standard input"
    )  # fmt: skip
    parser.add_argument("--user", metavar="COLUMN", help="whose text it is")
    parser.add_argument("--text", metavar="COLUMN", help="the texts")
    parser.add_argument(
        "--ngrams", type=int, default=1, metavar="N", help="sequences of up to N words (default: 1)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the .parquet file to write")
    parser.add_argument(
        "--nulls",
        default="error",
        metavar="RULE",
        help="error (default), drop such rows, or group null texts as a null word",
    )
    add_types(parser)
    add_dialect(parser)
    parser.add_argument(
        "--processes", type=int, metavar="N", help="cores to use (default: all); same words"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--quiet", action="store_true", help="no progress bar, no summary")


def run(args: argparse.Namespace) -> None:
    """Check everything that needs no data, take texts apart, and write."""
    for value, fix in (
        (args.input, "INPUT is missing: name at least one file, folder or quoted glob"),
        (args.user, "--user is missing: name the column that says whose text it is"),
        (args.text, "--text is missing: name the column of texts"),
        (args.output, "-o FILE.parquet is missing (dp-sips tokenize --help explains)"),
    ):
        if not value:
            raise UsageError(fix)
    with inputs(args):
        _tokenize(args)


def _tokenize(args: argparse.Namespace) -> None:
    item = ngrams(args.text, args.ngrams, processes=args.processes)
    path = check_tokens_path(args.output)
    local = [place for place in args.input if not is_remote(place)]
    read = (find_any_files if dialect(args) else find_files)(local) if local else []
    check_output(path, overwrite=args.force, inputs=read)
    write_tokens(
        data(args),
        path,
        user=args.user,
        item=item,
        nulls=args.nulls,
        types=types(args),
        overwrite=args.force,
        progress=False if args.quiet else None,
    )
    end_at_signals()
    if not args.quiet:
        say(f"Wrote the words to {path}.")

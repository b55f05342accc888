"""dp-sips select: release the items of a data set."""

import argparse
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from dp_sips.booked import staying_booked
from dp_sips.checkpoint import NOT_SAVED, Checkpoint, Saved
from dp_sips.cli.dialect import add_dialect, data, dialect
from dp_sips.cli.dry_run import say_what_would_happen
from dp_sips.cli.flags import add_mechanism, add_privacy, add_types, mechanism, planning, types
from dp_sips.cli.histogram import read_histogram
from dp_sips.cli.ledger import add_ledger, ledger
from dp_sips.cli.parser import Parser
from dp_sips.cli.piped import inputs
from dp_sips.cli.signals import end_at_signals
from dp_sips.cli.streams import ReaderGone, emit_json, say, stdout, writing_stdout
from dp_sips.cli.summary import summary
from dp_sips.engines import MEMORY_OPTIONS, find_engine
from dp_sips.engines.base import Engine
from dp_sips.engines.memory import MemoryEngine
from dp_sips.errors import UsageError
from dp_sips.formats import (
    WRITERS,
    check_columns,
    format_of,
    plain_rows,
    without_formulas,
    write_table,
)
from dp_sips.mechanisms import Mechanism
from dp_sips.output import Writer, check_output, digest, write_files
from dp_sips.pages.report import report_page
from dp_sips.plan import plan
from dp_sips.select import select_partitions
from dp_sips.selection import Selection
from dp_sips.sources import open_source
from dp_sips.sources.addresses import is_remote
from dp_sips.sources.finding import find_any_files, find_files
from dp_sips.text import TextItems, ngrams

_EXAMPLES = """\
Items go to stdout as CSV, or to a file. Its suffix tells the format: .parquet, .arrow
(.feather, .ipc), .csv, .jsonl (.ndjson) or .txt; the last three also with .gz. In these
three, binary items are written as hexadecimal digits. An item is released or not; no
count of users or rows is in the output or the log; a progress bar on a terminal counts
rows; --quiet leaves it out.

examples:
  dp-sips select reviews.parquet --user user_id --item word --epsilon 1 --delta 1e-6
  dp-sips select 'logs/*.csv' --user id --item city --item product --epsilon 1 \\
      --delta 1e-6 --max-items 20 -o released.parquet --certificate released.json
  dp-sips select visits.csv --user id --item country --item city --hierarchy \\
      --epsilon 1 --delta 1e-6 -o cities.csv --prefixes countries.csv"""


_OUTPUTS: Final = {
    "-o": "output",
    "--certificate": "certificate",
    "--report": "report",
    "--prefixes": "prefixes",
}
"""The flags that name a file to write."""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.usage = (
        "dp-sips select INPUT… --user U --item I (--epsilon E | --rho R) --delta D\n"
        "                      [-o FILE] …"
    )
    add_input(parser)
    _add_levels(parser)
    add_privacy(parser)
    add_ledger(parser)
    add_mechanism(parser)
    add_histogram(parser)
    add_output(parser)
    add_engine(parser)
    _add_checkpoint(parser)


def run(args: argparse.Namespace) -> None:
    """Check everything that needs no data, select, and write."""
    check_words(args)
    _check_levels(args)
    with inputs(args):
        _select(args)


def _select(args: argparse.Namespace) -> None:
    saved = None if args.checkpoint is None else Checkpoint(args.checkpoint)
    goes_on = saved is not None and saved.going_on
    if goes_on and not args.force:
        _refuse_written(args)
    check_outputs(args, columns=len(args.item))
    chosen = mechanism(args.mechanism, args, histogram=histogram(args))
    if args.dry_run:
        engine(args)  # what is wrong with its flags is said here, too
        made = plan(chosen, max_items=args.max_items, **planning(args, chosen))
        say_what_would_happen(args, made.explain(), None if goes_on else made.guarantee)
        return
    try:
        selection = select_partitions(
            data(args),
            item=_item(args),
            hierarchy=args.hierarchy,
            max_items=args.max_items,
            checkpoint=saved,
            **reading(args, chosen),
        )
        write_release("items", selection.items, selection, args, saved or NOT_SAVED)
    except (KeyboardInterrupt, ReaderGone):
        if saved is not None and saved.going_on:
            say(f"{saved} stays: the same command goes on from there. It holds the secret key.")
        raise
    finally:
        if saved is not None:
            saved.close()
    if not args.quiet:
        say(summary(selection, args.output))


def _refuse_written(args: argparse.Namespace) -> None:
    """Say what to do about an output that a run may have written just before it was killed."""
    for path in _outputs(args).values():
        if Path(path).exists():
            raise UsageError(
                f"{path} exists, and --checkpoint {args.checkpoint} has a run to go on with: if "
                f"that was killed after it wrote {path}, --force writes the same release again"
            )


def _add_checkpoint(parser: Parser) -> None:
    group = parser.add_argument_group("long runs")
    group.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="save the run after each round: if it is killed, the same command goes on from there; "
        "holds the secret key, and is removed in the end",
    )


def _add_levels(parser: Parser) -> None:
    group = parser.add_argument_group("levels (each one selects among what the last one released)")
    group.add_argument(
        "--hierarchy",
        action="store_true",
        help="the first --item, then it and the second, and so on, the coarsest first",
    )
    group.add_argument(
        "--prefixes",
        metavar="FILE",
        help="with --hierarchy: write what the levels before the last released; finer columns are "
        "empty",
    )
    group.add_argument(
        "--ngrams",
        type=int,
        metavar="N",
        help="items are sequences of up to N words, from tokenize --ngrams N: the single words, "
        "then pairs of released words, and so on",
    )


def _check_levels(args: argparse.Namespace) -> None:
    """Say what does not go together in the flags of levels."""
    if args.prefixes and not args.hierarchy:
        raise UsageError("--prefixes is for --hierarchy: leave it out, or add that")
    if args.hierarchy and len(args.item) == 1:
        raise UsageError("--hierarchy needs several --item, the coarsest first")
    if args.prefixes:
        check_columns(format_of(Path(args.prefixes)), len(args.item) - 1)
    if args.prefixes and args.nulls == "group":
        raise UsageError("--prefixes has empty fields, and --nulls group makes these items")
    if args.ngrams is not None and (args.hierarchy or len(args.item) > 1):
        raise UsageError("--ngrams is for one --item, whose words are the levels")
    if args.dry_run and (args.hierarchy or args.ngrams):
        raise UsageError(
            "--dry-run shows the plan of one selection: leave out --hierarchy, --ngrams"
        )


def _item(args: argparse.Namespace) -> list[str] | TextItems:
    """Return what the flags call an item."""
    if args.ngrams is None:
        return list(args.item)
    return ngrams(args.item[0], args.ngrams, levels=True, tokenized=True)


def reading(args: argparse.Namespace, chosen: str | Mechanism) -> dict[str, Any]:
    """Return what select and count hand on alike: whose rows, by what, within which budget."""
    return {
        "user": args.user,
        **planning(args, chosen),
        "ledger": ledger(args),
        "public_items": args.public_items,
        "mechanism": chosen,
        "engine": engine(args),
        "nulls": args.nulls,
        "types": types(args),
        "seed": args.seed,
        "insecure_test": args.insecure_test,
        "progress": False if args.quiet else None,
    }


def add_input(parser: Parser) -> None:
    """Add what is read, and how."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "input", nargs="*", metavar="INPUT", help="Parquet, CSV, JSON lines or Arrow: files, "
        "folders, quoted globs or addresses such as s3://bucket/key; - for standard input"
    )  # fmt: skip
    group.add_argument("--user", metavar="COLUMN", help="whose row it is: the one protected")
    group.add_argument(
        "--item",
        action="append",
        metavar="COLUMN",
        help="what to publish the distinct values of; several make one item together",
    )
    group.add_argument(
        "--nulls",
        default="error",
        metavar="RULE",
        help="error (default), drop such rows, or group null items as an item of their own; in "
        "CSV, null is an empty field, and NA is text",
    )
    group.add_argument(
        "--public-items",
        metavar="FILE",
        help="items that are public already, in a file with the item columns: they use up nothing "
        "of what a user can give, and the release has new ones only",
    )
    add_types(group)
    add_dialect(group)


def add_histogram(parser: Parser) -> None:
    """Add --histogram."""
    parser.add_argument(
        "--histogram",
        metavar="FILE",
        help="for gw (the default with this flag) and matching: public frequencies that say which "
        "item of a user comes first; a file with the item columns and a column 'count'. It must "
        "not come from the data",
    )


def histogram(args: argparse.Namespace) -> dict[Any, int] | None:
    """Read the public frequencies, if there are any."""
    if args.histogram is None:
        return None
    source = open_source(data(args), user=args.user, item=args.item, types=types(args))
    return read_histogram(args.histogram, source)


def add_output(parser: Parser) -> None:
    """Add where the release goes."""
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="write the items to FILE")
    group.add_argument(
        "--format", metavar="NAME", help=f"{', '.join(WRITERS)} (default: by suffix; csv on stdout)"
    )
    group.add_argument(
        "--escape-formulas",
        action="store_true",
        help="in CSV, put an apostrophe before text that a spreadsheet takes for a formula",
    )
    group.add_argument("--certificate", metavar="FILE", help="write the public facts as JSON")
    group.add_argument("--report", metavar="FILE", help="write a page about the release, as HTML")
    group.add_argument("--json", action="store_true", help="print items and certificate as JSON")
    group.add_argument("--force", action="store_true", help="replace existing output files")
    group.add_argument("--quiet", action="store_true", help="no progress bars, no summary")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be read and done, and stop: nothing is released or spent",
    )


def add_engine(parser: Parser) -> None:
    """Add what runs it, and test seeds."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--engine",
        default="auto",
        metavar="NAME",
        help="auto (default), memory, spark or reference",
    )
    group.add_argument("--master", metavar="URL", help="Spark's address (default: local[*])")
    group.add_argument("--threads", type=int, metavar="N", help="cores to use (default: all)")
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory to keep to, as 8GB, or bytes; at least 200MB (default: 70%% of all); more "
        "goes to disk",
    )
    group.add_argument("--spill-folder", metavar="DIR", help="where on disk (default: temporary)")
    group.add_argument(
        "--seed", type=int, metavar="N", help="for tests: a repeatable release, not private"
    )
    group.add_argument("--insecure-test", action="store_true", help="required with --seed")


def check_words(args: argparse.Namespace) -> None:
    """Say what is missing, or does not go together, in the words of the command line."""
    for value, fix in (
        (args.input, "INPUT is missing: name at least one file, folder or quoted glob"),
        (args.user, "--user is missing: name the column that says whose row it is"),
        (args.item, "--item is missing: name the column to publish the distinct values of"),
    ):
        if not value:
            raise UsageError(fix)
    if args.seed is not None and not args.insecure_test:
        raise UsageError(
            f"--seed {args.seed} makes the release repeatable, and so not private: leave it out, "
            "or add --insecure-test if that is what you want"
        )
    if args.json and args.format and not args.output:
        raise UsageError(f"--json and --format {args.format} both want stdout: leave one out")


def check_outputs(args: argparse.Namespace, *, columns: int, keys: str | None = None) -> None:
    """Reject outputs that cannot be written, before any data is read; `keys` are read, too."""
    kind = format_of(Path(args.output or "stdout"), args.format or _default_format(args))
    check_columns(kind, columns)
    if args.escape_formulas and kind != "csv":
        raise UsageError(f"--escape-formulas is for CSV, and the format is {kind}: leave it out")
    if args.json or not args.output:
        stdout()  # or say that it is closed
    places = [*args.input, *filter(None, [keys, args.public_items])]
    local = [place for place in places if not is_remote(place)]
    find = find_any_files if dialect(args) else find_files
    read = find(local) if local else []
    given = _outputs(args)
    if args.ledger and Path(args.ledger).exists():
        read = [*read, Path(args.ledger)]
    for path in given.values():
        check_output(path, overwrite=args.force, inputs=read)
    for (one, path), (other, second) in combinations(given.items(), 2):
        if Path(path).resolve() == Path(second).resolve():
            raise UsageError(f"{one} and {other} are the same file, {path}: name two")


def _outputs(args: argparse.Namespace) -> dict[str, str]:
    """Return the files to write, by the flags that name them."""
    named = {flag: getattr(args, name, None) for flag, name in _OUTPUTS.items()}
    return {flag: path for flag, path in named.items() if path}


def _default_format(args: argparse.Namespace) -> str | None:
    return None if args.output else "csv"


def engine(args: argparse.Namespace) -> str | Engine:
    """Return the engine that the flags describe."""
    if args.master is not None:
        if args.engine != "spark":
            raise UsageError(f"--master is for the engine spark, and this is {args.engine!r}")
        return find_engine("spark", master=args.master)
    options = {name: getattr(args, name) for name in ("threads", *MEMORY_OPTIONS)}
    given = [name for name, value in options.items() if value is not None]
    if not given:
        return str(args.engine)
    if args.engine not in ("auto", "memory"):
        flag = "--" + given[0].replace("_", "-")
        raise UsageError(f"{flag} is for the memory engine, and this is {args.engine!r}")
    return MemoryEngine(**options)


def write_release(
    name: str,
    table: Any,
    selection: Selection,
    args: argparse.Namespace,
    saved: Saved = NOT_SAVED,
) -> None:
    """Write the files that were asked for, all of them or none, and what goes to stdout.

    What was saved of the run is kept until the release is in its file, or through to stdout.
    """
    with staying_booked(args.ledger if selection.private else None):
        certified = _write_files(table, selection, args)
        end_at_signals()
        if args.output:
            saved.done()
        _write_stdout(name, table, certified, args)
    saved.done()


def _write_files(table: Any, selection: Selection, args: argparse.Namespace) -> Selection:
    """Write the data, then what has its digest; return what is certified."""
    certified = [selection]

    def write_data(sink: BinaryIO) -> None:
        path = Path(args.output)
        write_table(_shown(table, args), sink, path, format_of(path, args.format))
        certified.append(certified[-1].written(path.name, digest(sink)))

    def write_prefixes(sink: BinaryIO) -> None:
        path = Path(args.prefixes)
        write_table(_shown(_prefixes(selection), args), sink, path, format_of(path))
        certified.append(certified[-1].written(path.name, digest(sink), "prefixes"))

    def write_certificate(sink: BinaryIO) -> None:
        sink.write(certified[-1].to_json().encode() + b"\n")

    def write_report(sink: BinaryIO) -> None:
        page = report_page(certified[-1].certificate, selection.plan, table)
        sink.write(page.encode())

    writers: dict[Path, Writer] = {}
    if args.output:
        writers[Path(args.output)] = write_data
    if getattr(args, "prefixes", None):
        writers[Path(args.prefixes)] = write_prefixes
    if args.certificate:
        writers[Path(args.certificate)] = write_certificate
    if args.report:
        writers[Path(args.report)] = write_report
    write_files(writers, overwrite=args.force)
    return certified[-1]


def _prefixes(selection: Selection) -> Any:
    """Return what the levels before the last released, in the columns of the items."""
    *coarser, last = selection.levels
    columns = last.slice(0, 0).select(coarser[-1].column_names)
    return pa.concat_tables([columns, *coarser], promote_options="default")


def _shown(items: Any, args: argparse.Namespace) -> Any:
    return without_formulas(items) if args.escape_formulas else items


def _write_stdout(name: str, table: Any, selection: Selection, args: argparse.Namespace) -> None:
    if args.json:
        shown = {"output": args.output} if args.output else {name: _listed(table)}
        emit_json(shown | {"certificate": selection.certificate})
    elif not args.output:
        with writing_stdout() as stream:
            WRITERS[args.format or "csv"](_shown(table, args), stream.buffer)


def _listed(items: Any) -> list[Any]:
    """Return values where items have one column, else objects."""
    if items.num_columns == 1:
        return [value for (value,) in plain_rows(items)]
    return [dict(zip(items.column_names, row, strict=True)) for row in plain_rows(items)]

"""dp-sips count: about how many users hold each item, of a selection or of given keys."""

import argparse
from dataclasses import asdict

from dp_sips.cli.dialect import data
from dp_sips.cli.dry_run import say_what_would_happen
from dp_sips.cli.flags import add_mechanism, add_privacy, mechanism, planning
from dp_sips.cli.ledger import add_ledger
from dp_sips.cli.parser import Parser
from dp_sips.cli.piped import inputs
from dp_sips.cli.select import (
    add_engine,
    add_histogram,
    add_input,
    add_output,
    check_outputs,
    check_words,
    engine,
    histogram,
    reading,
    write_release,
)
from dp_sips.cli.streams import say
from dp_sips.cli.summary import summary
from dp_sips.count import count_users
from dp_sips.counts import Counts
from dp_sips.mechanisms import Mechanism
from dp_sips.mechanisms.base import Asked, asked_for
from dp_sips.mechanisms.counting import (
    DEFAULT_MAX_ITEMS,
    DEFAULT_SHARE,
    Counting,
    GivenKeys,
    check_share,
    selection_part,
)
from dp_sips.plan import plan
from dp_sips.privacy.guarantee import Guarantee

_EXAMPLES = """\
Items and their numbers of users go to stdout as CSV, or to a file, as in dp-sips select. The
column is called users; its numbers are whole, have noise, and may be negative. Selection
and counts together spend what you give. It needs OpenDP: pip install 'dp-sips[counts]'.

examples:
  dp-sips count reviews.parquet --user user_id --item word --epsilon 1 --delta 1e-6 \\
      --max-items 5 -o counts.csv
  dp-sips count visits.csv --user id --item city --keys cities.csv --epsilon 1 --delta 1e-6"""

_MAX_ITEMS = (
    "how many of the items a user counts for; more are left out at random, and the noise grows as "
    f"the root of it (default: {DEFAULT_MAX_ITEMS})"
)


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.usage = (
        "dp-sips count INPUT… --user U --item I (--epsilon E | --rho R) --delta D\n"
        "                     [--keys FILE] [-o FILE] …"
    )
    add_input(parser)
    add_privacy(parser, _MAX_ITEMS)
    _add_counts(parser)
    add_ledger(parser)
    add_mechanism(parser)
    add_histogram(parser)
    add_output(parser)
    add_engine(parser)


def run(args: argparse.Namespace) -> None:
    """Check everything that needs no data, select, count, and write."""
    check_words(args)
    with inputs(args):
        _count(args)


def _count(args: argparse.Namespace) -> None:
    check_outputs(args, columns=len(args.item) + 1, keys=args.keys)
    chosen = mechanism(args.mechanism, args, histogram=histogram(args))
    if args.dry_run:
        engine(args)  # what is wrong with its flags is said here, too
        say_what_would_happen(args, *_planned(args, chosen))
        return
    counts = count_users(
        data(args),
        item=args.item,
        keys=args.keys,
        share=args.share,
        max_items=DEFAULT_MAX_ITEMS if args.max_items is None else args.max_items,
        other=args.other,
        selection_max_items=args.selection_max_items,
        **reading(args, chosen),
    )
    write_release("counts", counts.table, counts.selection, args)
    if not args.quiet:
        told = summary(counts.selection, args.output, selected=args.keys is None)
        say("\n".join((told, _noise(counts))))


def _planned(args: argparse.Namespace, chosen: str | Mechanism) -> tuple[str, Guarantee]:
    """Say how the budget is split, and how the items would be selected, or that they are given.

    Return what items and counts together would spend, too.
    """
    asked = asked_for(args.epsilon, args.delta, args.rho)
    numbers = ", ".join(f"{name} = {value:g}" for name, value in asdict(asked).items())
    most = DEFAULT_MAX_ITEMS if args.max_items is None else args.max_items
    counted = f"a user counts for at most {most} items (--max-items)"
    if args.keys is not None:
        given = GivenKeys().design(asked, most).guarantee
        words = f"{GivenKeys().words(())}\nAll of {numbers} is for the counts; {counted}."
        return words, _spent(asked, given, most, 1.0)
    share = DEFAULT_SHARE if args.share is None else check_share(args.share)
    part = planning(args, chosen) | asdict(selection_part(asked, share))
    made = plan(chosen, max_items=args.selection_max_items, **part)
    words = (
        f"Selection and counts together have {numbers}, as asked. The counts have {share:.0%} of\n"
        f"it (--share), and what exact composition leaves; {counted}.\n"
        f"This is the selection's part:\n\n{made.explain()}"
    )
    return words, _spent(asked, made.guarantee, most, share)


def _spent(asked: Asked, selection: Guarantee, max_items: int, share: float) -> Guarantee:
    """Return what a selection and the counts after it spend together."""
    return asked.about(Counting.within(asked, selection, max_items, share).guarantee)


def _add_counts(parser: Parser) -> None:
    group = parser.add_argument_group("counts")
    group.add_argument(
        "--keys",
        metavar="FILE",
        help="count the items of a file, which must be public, and select nothing; it has the item "
        "columns",
    )
    group.add_argument(
        "--share",
        type=float,
        metavar="S",
        help="the counts' part of ε or ρ; the selection has the rest (default: one third)",
    )
    group.add_argument(
        "--other",
        action="store_true",
        help="add a row with an empty item: the users who hold none of the items",
    )
    group.add_argument(
        "--selection-max-items",
        type=int,
        metavar="N",
        help="how many items of a user count in the selection: --max-items of dp-sips select",
    )


def _noise(counts: Counts) -> str:
    deviation = f"a standard deviation of {counts.standard_deviation:.1f}"
    return f"Counts have noise with {deviation}: small ones may be below zero."

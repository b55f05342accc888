"""--dry-run: what would be read and done, from headers and public parameters alone."""

import argparse

import pyarrow as pa

from dp_sips.cli.dialect import data
from dp_sips.cli.flags import types
from dp_sips.cli.ledger import ledger
from dp_sips.cli.piped import LABEL
from dp_sips.cli.streams import emit
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.sources import Source, open_source
from dp_sips.sources.values import AnyKind


def say_what_would_happen(args: argparse.Namespace, words: str, spent: Guarantee | None) -> None:
    """Print the columns with their types, where the release would go, and what would be done.

    `spent` is what would be booked: nothing for a run that goes on.
    """
    source = open_source(
        data(args), user=args.user, item=args.item, nulls=args.nulls, types=types(args)
    )
    label = LABEL if args.piped else source.feed.label
    emit("\n".join((*_columns(source, label), *_booking(args, spent), _outputs(args), "", words)))


def _booking(args: argparse.Namespace, spent: Guarantee | None) -> list[str]:
    """Say that the release would be booked, or refuse it as the ledger would."""
    given = ledger(args)
    if given is None or spent is None or args.seed is not None:
        return []
    given.check(spent)
    return [f"Would book the release in {given.path}, which has enough left for it."]


def _columns(source: Source, label: str) -> list[str]:
    user, *items = source.schema
    return [
        f"Would read {label}:",
        f"  user  {user.name} ({_named(user.type)})",
        *(f"  item  {item.name} ({_named(item.type)})" for item in items),
    ]


def _named(kind: pa.DataType) -> str:
    return "each value of its own kind" if isinstance(kind, AnyKind) else str(kind)


def _outputs(args: argparse.Namespace) -> str:
    files = [path for path in (args.output, args.certificate, args.report) if path]
    return f"Would write {', '.join(files) or 'to stdout'}. Nothing was released or spent."

"""--dry-run: what would be read and done, from headers and public parameters alone."""

import argparse

import pyarrow as pa

from dp_sips.cli.dialect import data
from dp_sips.cli.flags import types
from dp_sips.cli.streams import emit
from dp_sips.sources import Source, open_source
from dp_sips.sources.values import AnyKind


def say_what_would_happen(args: argparse.Namespace, words: str) -> None:
    """Print the columns with their types, where the release would go, and what would be done."""
    source = open_source(
        data(args), user=args.user, item=args.item, nulls=args.nulls, types=types(args)
    )
    emit("\n".join((*_columns(source), _outputs(args), "", words)))


def _columns(source: Source) -> list[str]:
    user, *items = source.schema
    return [
        f"Would read {source.feed.label}:",
        f"  user  {user.name} ({_named(user.type)})",
        *(f"  item  {item.name} ({_named(item.type)})" for item in items),
    ]


def _named(kind: pa.DataType) -> str:
    return "each value of its own kind" if isinstance(kind, AnyKind) else str(kind)


def _outputs(args: argparse.Namespace) -> str:
    files = [path for path in (args.output, args.certificate, args.report) if path]
    return f"Would write {', '.join(files) or 'to stdout'}. No rows were read, nothing was spent."

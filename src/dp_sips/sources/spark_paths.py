"""What Spark knows of the path of each row's file.

Spark's own discovery of such columns infers their types from all paths, and is turned off: see
path_columns.py.
"""

from collections.abc import Sequence
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name that everybody uses)

from dp_sips.sources.addresses import shown_address
from dp_sips.sources.path_columns import check_alike, raw_columns


def path_values(frame: DataFrame, names: Sequence[str]) -> dict[str, Column]:
    """Return those of the names that are columns in paths, with values as addresses write them.

    Public: the names. Sensitive: the values, which stay in the table.
    """
    addresses = frame.inputFiles()
    folders = [address.split("/")[:-1] for address in addresses]
    labels = map(shown_address, addresses)
    paths = [raw_columns(map(unquote, parts)) for parts in folders]
    check_alike(list(zip(labels, paths, strict=True)), names)
    spelled = {part.partition("=")[0] for parts in folders for part in parts if "=" in part}
    path = frame.metadataColumn("_metadata")["file_path"]
    return {
        name: F.regexp_extract(path, _pattern(name, spelled), 1).alias(name)
        for name in names
        if paths and name in paths[0]
    }


def _pattern(name: str, spelled: set[str]) -> str:
    """Return a pattern of Java's that finds the innermost folder of that name."""
    quoted = [rf"\Q{raw}\E" for raw in sorted(spelled) if unquote(unquote(raw)) == name]
    return f".*/(?:{'|'.join(quoted)})=([^/]*)/"

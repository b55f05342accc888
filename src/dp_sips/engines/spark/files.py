"""Files as Spark reads them: from the workers' own disks or storage, not through the driver."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dp_sips.engines.spark.failures import JAVA_ERRORS, condition
from dp_sips.errors import InputError
from dp_sips.sources.finding import find_files, kind_of
from dp_sips.sources.spark_frames import SparkFiles

Place = str | os.PathLike[str]


def are_paths(data: Any) -> bool:
    """Whether these are paths, and not a table or pairs."""
    places = data if isinstance(data, (list, tuple)) and data else [data]
    return all(isinstance(place, (str, os.PathLike)) for place in places)


def read_files(data: Any, start: Callable[[], SparkSession]) -> Any:
    """Return Parquet, CSV or JSON lines as a Spark table; Arrow files as they came.

    A path with a scheme, such as s3://, is Spark's to find.
    """
    places = data if isinstance(data, (list, tuple)) else [data]
    paths = _found(places)
    kinds = {kind_of(Path(path)) for path in paths}
    if kinds == {"ipc"}:
        return data
    if len(kinds) > 1:
        raise InputError(f"Spark reads files of one kind at a time, got {_listed(kinds)}")
    label = paths[0] if len(paths) == 1 else f"{len(paths)} files from {paths[0]} on"
    try:
        kind = kinds.pop()
        return SparkFiles(_read(start(), kind, paths), label, lines=kind == "json")
    except JAVA_ERRORS as error:
        raise InputError(f"{label} cannot be read: {condition(error)}") from None


def _found(places: Sequence[Place]) -> list[str]:
    remote = [str(place) for place in places if "://" in str(place)]
    local = [place for place in places if "://" not in str(place)]
    return remote + ([str(path.absolute()) for path in find_files(local)] if local else [])


def _read(spark: SparkSession, kind: str | None, paths: list[str]) -> DataFrame:
    """Read with rules of the memory engine: CSV is text, and an empty field of it is null.

    Of JSON, Spark would infer types from all rows: workers read its lines as other engines do.
    """
    if kind == "json":
        return spark.read.text(paths, lineSep="\n")
    if kind in ("csv", "tsv"):
        return spark.read.csv(
            paths,
            sep="\t" if kind == "tsv" else ",",
            header=True,
            enforceSchema=False,  # Spark would take the first file's header for all of them
            mode="FAILFAST",
            multiLine=True,
            escape='"',
        )
    return spark.read.parquet(*paths)


def _listed(kinds: set[str | None]) -> str:
    return ", ".join(sorted(str(kind) for kind in kinds))

"""Addresses of other file systems, such as s3://bucket/key, and what messages show of them."""

import os
import re
from typing import Final
from urllib.parse import urlsplit

from dp_sips.errors import InputError
from dp_sips.sources.path_columns import without_values

_LOCAL: Final = "file://"
_ADDRESS: Final = re.compile(
    r"(?P<scheme>[A-Za-z][\w+.-]*)://(?P<authority>[^/?#]*)(?P<path>.*?)(?P<query>\?\w+=.*)?",
    re.DOTALL,
)
_SECRET: Final = re.compile(r":(?!\d+$)")
WEB: Final = ("http", "https")
_CONTAINERS: Final = ("abfs", "abfss", "wasb", "wasbs", "az")
"""Where container@account is an address, and the container is not a user."""


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Whether this is an address of another file system; file:// is this machine."""
    return isinstance(place, str) and "://" in place and not place.startswith(_LOCAL)


def local_path(place: str) -> str:
    """Return the path of a file:// address; of any other place, the place itself."""
    if not place.startswith(_LOCAL):
        return place
    from urllib.request import url2pathname  # brings all of HTTP

    return url2pathname(urlsplit(place).path)


def split_address(address: str) -> tuple[str, str, str, str]:
    """Return scheme, authority, path and options, such as ?region=eu-north-1.

    The path is taken as it is, as by the stores' own tools: %20 is three characters, and a question
    mark that no name=value follows is a wildcard.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise InputError("an address has no scheme: write it as s3://bucket/key")
    scheme, authority, path = found["scheme"].lower(), found["authority"], found["path"]
    if scheme in WEB:
        path, mark, query = (path + (found["query"] or "")).partition("?")
        return scheme, authority, path, mark + query
    return scheme, authority, path, found["query"] or ""


def shown_address(address: str) -> str:
    """Return an address for messages: without credentials, options and values in its path."""
    scheme, authority, path, _ = split_address(address)
    if "@" in path and _SECRET.search(authority) and "@" not in authority:
        authority, _, path = path.rpartition("@")[2].partition("/")  # a secret with a slash in it
        path = f"/{path}"
    user, at, host = authority.rpartition("@")
    container = user.split(":")[0] + at if scheme in _CONTAINERS else ""
    return f"{scheme}://{container}{host}{without_values(path)}"

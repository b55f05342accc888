"""Why a file could not be read, in words that show no value, no path and no credentials."""

import os
import re
import socket
from typing import Final

_STORES: Final = re.compile(r"(AWS Error|google::cloud::Status\(|Azure Error: \[)\s*(\w+)")
_CHECKS: Final = {
    "AWS Error": (
        "check the network, the credentials, and the options region and endpoint_override "
        "(s3://bucket/key?region=eu-north-1)"
    ),
    "google::cloud::Status(": (
        "check the network and the credentials (gcloud auth application-default login, or "
        "gs://anonymous@bucket/key for public data)"
    ),
    "Azure Error: [": "check the network, the account and the credentials",
}
"""What to check, by the words before a store's own name for an error."""
_AZURE: Final = re.compile(r"N5Azure4Core|Azure::Core")
"""Azure's own exceptions, by the name of the class: of a login, or of a connection."""
_HADOOP: Final = re.compile(r"lib(jvm|hdfs)")

_BROKEN: Final = re.compile(
    r"Truncated compressed stream|Expected to (be able to )?read \d+ |Corrupt snappy|"
    r"\w+ (decompress|inflate) failed|Tried reading schema message, was null or length 0"
)
"""How Arrow begins to say that a file is not whole."""
_NO_FOOTER: Final = {
    "Parquet magic bytes not found in footer": "a Parquet file",
    "Parquet file size is": "a Parquet file",
    "Not an Arrow file": "an Arrow file",
}
"""What a file should be, by how Arrow begins to say that it does not end like one."""


class PlainError(OSError):
    """An error of the file system whose words can be shown."""


def reason(error: BaseException, otherwise: str = "it is damaged, or not what it seems") -> str:
    """Say what went wrong without the words of the library, which may show anything."""
    if isinstance(error, PlainError):
        return str(error)
    if isinstance(error, socket.gaierror):
        return "no such host, or no connection"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return _by_store(error) or _by_end(error) or f"{otherwise} ({type(error).__name__})"


def _by_store(error: BaseException) -> str | None:
    """Return what the store calls the error, if it has a name or a number."""
    if said := _STORES.search(str(error)):
        return f"the store says {said[2]}: {_CHECKS[said[1]]}"
    if _AZURE.search(str(error)):
        return f"Azure's store does not answer, or refuses: {_CHECKS['Azure Error: [']}"
    if _HADOOP.search(str(error)):
        return "there is no libhdfs: set JAVA_HOME, HADOOP_HOME and CLASSPATH, or engine='spark'"
    status = getattr(error, "status", None)
    return f"the server says {status}" if isinstance(status, int) else None


def _by_end(error: BaseException) -> str | None:
    """Say so if Arrow finds that a file is not whole."""
    if _BROKEN.match(str(error)):
        return "it ends too early or is damaged: copy it again"
    for words, kind in _NO_FOOTER.items():
        if str(error).startswith(words):
            return f"it ends too early, or is not {kind}: copy it again, or correct its name"
    return None

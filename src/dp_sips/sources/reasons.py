"""Why a file could not be read, in words that show no value, no path and no credentials."""

import os
import re
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
_HADOOP: Final = re.compile(r"lib(jvm|hdfs)")


class PlainError(OSError):
    """An error of the file system whose words can be shown."""


def reason(error: BaseException, otherwise: str = "it is damaged, or not what it seems") -> str:
    """Say what went wrong without the words of the library, which may show anything."""
    if isinstance(error, PlainError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return _by_store(error) or f"{otherwise} ({type(error).__name__})"


def _by_store(error: BaseException) -> str | None:
    """Return what the store calls the error, if it has a name or a number."""
    if said := _STORES.search(str(error)):
        return f"the store says {said[2]}: {_CHECKS[said[1]]}"
    if _HADOOP.search(str(error)):
        return "there is no libhdfs: set JAVA_HOME, HADOOP_HOME and CLASSPATH, or engine='spark'"
    status = getattr(error, "status", None)
    return f"the server says {status}" if isinstance(status, int) else None

"""Files and tables of every kind become one stream of Arrow batches."""

from dp_sips.sources.base import Source
from dp_sips.sources.opening import open_source

__all__ = ["Source", "open_source"]

"""dp-sips: which groups may I publish?

Given pairs of users and items, release as many items as possible under differential privacy,
without revealing whether any one person is in the data. `select_partitions` does it, `plan` says
beforehand what it will do, and `count_users` adds how many users hold each item.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dp_sips import text
from dp_sips.comparison import Comparison, compare
from dp_sips.counts import Counts
from dp_sips.errors import (
    DiskFullError,
    DpSipsError,
    InputError,
    OutOfMemoryError,
    OutputError,
    UnwiseWarning,
    UsageError,
)
from dp_sips.mechanisms import (
    Cumulative,
    Dpsu,
    FlatRule,
    Gw,
    Mad,
    Mad2R,
    Matching,
    PolicyLaplace,
    Single,
    Sips,
    SipsRule,
    WeightedGaussian,
)
from dp_sips.plan import Plan, plan
from dp_sips.privacy.budget import Budget
from dp_sips.privacy.guarantee import Guarantee
from dp_sips.selection import Selection

if TYPE_CHECKING:
    from dp_sips.auditing import Audit, audit
    from dp_sips.count import count_users
    from dp_sips.engines.memory import MemoryEngine
    from dp_sips.ledger import Ledger
    from dp_sips.select import select_partitions
    from dp_sips.sources.csv_files import CsvFiles
    from dp_sips.tokens import write_tokens

__all__ = [
    "Audit",
    "Budget",
    "Comparison",
    "Counts",
    "CsvFiles",
    "Cumulative",
    "DiskFullError",
    "DpSipsError",
    "Dpsu",
    "FlatRule",
    "Guarantee",
    "Gw",
    "InputError",
    "Ledger",
    "Mad",
    "Mad2R",
    "Matching",
    "MemoryEngine",
    "OutOfMemoryError",
    "OutputError",
    "Plan",
    "PolicyLaplace",
    "Selection",
    "Single",
    "Sips",
    "SipsRule",
    "UnwiseWarning",
    "UsageError",
    "WeightedGaussian",
    "audit",
    "compare",
    "count_users",
    "plan",
    "select_partitions",
    "text",
    "write_tokens",
]

# These bring Arrow and the compiled loops, which a plan does not need.
_ON_USE = {
    "Ledger": "dp_sips.ledger",
    "Audit": "dp_sips.auditing",
    "CsvFiles": "dp_sips.sources.csv_files",
    "MemoryEngine": "dp_sips.engines.memory",
    "audit": "dp_sips.auditing",
    "count_users": "dp_sips.count",
    "select_partitions": "dp_sips.select",
    "write_tokens": "dp_sips.tokens",
}


def __getattr__(name: str) -> Any:
    if name in _ON_USE:
        return getattr(import_module(_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

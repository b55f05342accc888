"""The paper's conversion tables: δ and α as printed, and as the library computes them."""

from collections.abc import Iterator
from typing import Any

from dp_sips.privacy.budget import Budget, zcdp_alpha
from evaluation.printed import VARY_DELTA, VARY_EPS


def conversions() -> Iterator[dict[str, Any]]:
    """Yield a row for each printed one."""
    for table, settings in (("vary_eps", VARY_EPS), ("vary_delta", VARY_DELTA)):
        for s in settings:
            delta = Budget(s.rho, s.delta_cdp).delta_at(s.epsilon, "zcdp")
            yield {
                "table": table,
                "rho": s.rho,
                "delta_cdp": s.delta_cdp,
                "epsilon": s.epsilon,
                "delta_paper": s.delta,
                "delta": delta,
                "alpha_paper": s.alpha,
                "alpha": zcdp_alpha(s.epsilon, s.rho),
            }

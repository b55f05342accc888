"""What comes back: the released items, and public facts about how they were released."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from numbers import Integral, Real
from typing import Any

from dp_sips.plan import Plan
from dp_sips.privacy.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class Selection:
    """The result of `select_partitions`: nothing in it says more than the items themselves.

    A selection equals only itself; to compare what was released, compare the items, each kind of
    table in its own way.

    Attributes:
        items: The released items, sorted, in the kind of table that came in.
        plan: The rounds that ran.
        private: False where a test seed was used: such a release has no guarantee.
    """

    items: Any
    plan: Plan
    private: bool
    _facts: dict[str, Any] = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """What was spent: rho, threshold_delta; `.epsilon(delta=…)`, `.delta(epsilon=…)`."""
        return self.plan.guarantee

    @property
    def certificate(self) -> dict[str, Any]:
        """Everything public about this release, ready for JSON."""
        spent = self.guarantee
        facts = {
            "software": f"dp-sips {version('dp-sips')}",
            "private": self.private,
            "neighbours": "one user, added or removed, with all of its items",
            "asked": asdict(self.plan.asked),
            "spent": {
                "statement": str(spent),
                "rho": spent.rho,
                "threshold_delta": spent.threshold_delta,
                "sampler_loss": spent.sampler.loss,
                "sampler_tail": spent.sampler.tail,
            },
            "mechanism": {"name": self.plan.mechanism.name, **_parameters(self.plan)},
            **({"chosen_by": self.plan.chosen_by} if self.plan.chosen_by else {}),
            "max_items": self.plan.max_items,
            "min_users": self.plan.min_users,
            "rounds": self.plan.table(),
            **self._facts,
        }
        return {name: _plain(fact) for name, fact in facts.items()}

    def to_json(self) -> str:
        """Return the certificate as JSON."""
        return json.dumps(self.certificate, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Turn each number, as a fraction or one of NumPy's, into what JSON knows."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return int(value) if isinstance(value, Integral) else float(value)


def _parameters(plan: Plan) -> dict[str, Any]:
    """Return the mechanism's parameters; of a public table, how many entries it has."""
    return {
        parameter.name: len(value) if isinstance(value, Mapping) else value
        for parameter in fields(plan.mechanism)  # type: ignore[arg-type]
        for value in (getattr(plan.mechanism, parameter.name),)
    }

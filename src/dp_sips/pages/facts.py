"""What a certificate says, under the names that the report uses.

The only place that knows how a certificate is laid out.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dp_sips.errors import InputError, UsageError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.base import Asked
from dp_sips.mechanisms.counting import selection_part
from dp_sips.pages.recipe import Recipe, alike, own_parameters
from dp_sips.plan import Plan, asked_for
from dp_sips.validation import check_finite


@dataclass(frozen=True)
class Facts:
    """A certificate, which is public.

    Attributes:
        certificate: All of it.
    """

    certificate: Mapping[str, Any]

    @property
    def software(self) -> str:
        """Name and version of what made the release."""
        return str(self.certificate["software"])

    @property
    def private(self) -> bool:
        """False where a test seed was used."""
        return self.certificate["private"] is True

    @property
    def asked(self) -> dict[str, float]:
        """The privacy parameters as they were given: epsilon or rho, and delta."""
        given = self.certificate["asked"]
        first = "epsilon" if "epsilon" in given else "rho"
        return {key: check_finite(key, given[key]) for key in (first, "delta")}

    @property
    def spent(self) -> str:
        """What was spent, as one statement."""
        return str(self.certificate["spent"]["statement"])

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the item columns."""
        return dict(self.certificate["items"])

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that ran."""
        return str(self.certificate["mechanism"]["name"])

    @property
    def look(self) -> Mapping[str, Any] | None:
        """What a private look at the data spent to choose the mechanism, if one did."""
        return self.certificate.get("chosen_by")

    @property
    def max_items(self) -> int:
        """Δ0 of the selection."""
        return int(self.certificate["max_items"])

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The public numbers of each round."""
        return list(self.certificate["rounds"])

    @property
    def nulls(self) -> str:
        """What became of nulls."""
        return str(self.certificate["nulls"])

    @property
    def count(self) -> Mapping[str, Any] | None:
        """What is public about counts, if there are any."""
        return self.certificate.get("count")

    @property
    def recipe(self) -> Recipe | None:
        """How to compute the rounds again; None where nothing was selected, or by others' code."""
        name, given = self.mechanism, dict(self.certificate["mechanism"])
        if name not in MECHANISMS:
            return None
        budget = self.asked
        if self.count is not None:
            budget = asdict(selection_part(self._budget(), self.count["share"]))
        if self.look is not None:
            return Recipe(self.look["name"], budget, self.max_items)
        del given["name"]
        return Recipe(name, budget, self.max_items, own_parameters(name, given))

    def _budget(self) -> Asked:
        given = self.asked
        return asked_for(given.get("epsilon"), given["delta"], given.get("rho"))

    def recomputed(self) -> Plan | None:
        """Compute the plan that ran from its public parameters; None if its rounds differ."""
        if self.recipe is None:
            return None
        try:
            made = self.recipe.plan()
        except UsageError:
            return None
        named = (p for p in (made, *made.branches()) if p.mechanism.name == self.mechanism)
        return next((p for p in named if alike(p.table(), self.rounds)), None)


def read_certificate(path: Path) -> Facts:
    """Read the certificate of a release, and check that it is one."""
    try:
        facts = Facts(json.loads(path.read_bytes()))
        _touch(facts)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} is not a certificate: give the file that --certificate wrote"
        ) from error
    return facts


def _touch(facts: Facts) -> None:
    """Read every fact, or fail."""
    for name, member in vars(Facts).items():
        if isinstance(member, property):
            getattr(facts, name)

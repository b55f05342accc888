"""What a certificate says, under the names that the report uses.

The only place that knows how a certificate is laid out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dp_sips.errors import InputError, UsageError
from dp_sips.mechanisms import MECHANISMS
from dp_sips.mechanisms.base import Asked, asked_for
from dp_sips.mechanisms.counting import selection_part
from dp_sips.pages.recipe import Recipe, alike, own_parameters
from dp_sips.plan import Plan
from dp_sips.validation import check_finite, check_positive, check_whole


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
        return f"{self.certificate['software']} {self.certificate['version']}"

    @property
    def time(self) -> str:
        """When it was made."""
        return str(self.certificate["time"]).replace("T", " ").replace("Z", " UTC")

    @property
    def private(self) -> bool:
        """False where a test seed was used."""
        return self.certificate["private"] is True

    @property
    def user(self) -> str:
        """The column whose values are protected."""
        return str(self.certificate["protected"]["user"])

    @property
    def asked(self) -> dict[str, float]:
        """The privacy parameters as they were given: epsilon or rho, and delta."""
        given = self.certificate["asked"]
        first = "rho" if given["epsilon"] is None else "epsilon"
        return {key: check_positive(key, given[key]) for key in (first, "delta")}

    @property
    def spent(self) -> tuple[float, float]:
        """What was spent: ε and δ."""
        spent = self.certificate["spent"]
        return check_finite("epsilon", spent["epsilon"]), check_finite("delta", spent["delta"])

    @property
    def statement(self) -> str:
        """What was spent, as one statement."""
        return str(self.certificate["spent"]["statement"])

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of the item columns."""
        return {str(name): str(kind) for name, kind in self.certificate["items"]["columns"].items()}

    @property
    def number(self) -> int:
        """How many items were released."""
        return check_whole("items.number", self.certificate["items"]["number"], least=0)

    @property
    def file(self) -> Mapping[str, str] | None:
        """The file that holds the release, and its SHA-256, if it was written to one."""
        return _file(self.certificate["output"])

    @property
    def prefixes(self) -> Mapping[str, str] | None:
        """The same for what the levels before the last released."""
        return _file(self.certificate.get("prefixes"))

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that ran."""
        return str(self.certificate["mechanism"]["name"])

    @property
    def look(self) -> Mapping[str, Any] | None:
        """What a private look at the data spent to choose the mechanism, if one did."""
        found = self.certificate["chosen_by"]
        return found and {"name": str(found["name"]), "epsilon": float(found["epsilon"])}

    @property
    def max_items(self) -> int:
        """Δ0 of the selection."""
        return check_whole("max_items", self.certificate["max_items"], least=0)

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The public numbers of each round: those that all have, and its own."""
        return [
            {name: row[name] for name in row if name != "parameters"} | dict(row["parameters"])
            for row in self.certificate["rounds"]
        ]

    @property
    def nulls(self) -> str:
        """What became of nulls."""
        return str(self.certificate["nulls"])

    @property
    def count(self) -> Mapping[str, Any] | None:
        """What is public about counts, if there are any."""
        found = self.certificate["count"]
        return found and {
            **found,
            "column": str(found["column"]),
            "other": bool(found["other"]),
            "max_items": check_whole("count.max_items", found["max_items"]),
            "standard_deviation": check_finite("deviation", found["standard_deviation"]),
        }

    @property
    def recipe(self) -> Recipe | None:
        """How to compute the rounds again.

        None where nothing was selected, or by others' code, or level by level: there, a level's
        budget depends on what the levels before it spent.
        """
        if self.mechanism not in MECHANISMS or self.certificate["levels"] is not None:
            return None
        budget = self.asked
        if self.count is not None:
            budget = asdict(selection_part(self._budget(), self.count["share"]))
        if self.look is not None:
            least = self.certificate["min_users"]
            more = {"min_users": least} if least > 1 else {}
            return Recipe(self.look["name"], {**budget, **more}, self.max_items)
        given = own_parameters(self.mechanism, self.certificate["mechanism"]["parameters"])
        return Recipe(self.mechanism, budget, self.max_items, given)

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
        return next((p for p in named if alike(_filled(p.table()), _filled(self.rounds))), None)


def _file(found: Any) -> Mapping[str, str] | None:
    return found and {"file": str(found["file"]), "sha256": str(found["sha256"])}


def _filled(rounds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the numbers that rounds have."""
    return [{key: value for key, value in row.items() if value is not None} for row in rounds]


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

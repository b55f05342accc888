"""Other libraries' names for our parameters."""

import inspect
from typing import Any

import pytest

from dp_sips import UsageError, plan, select_partitions
from dp_sips.validation import FOREIGN, OURS, refuse_unknown


def test_ours_are_the_real_ones() -> None:
    real = [p.name for p in inspect.signature(select_partitions).parameters.values()]
    assert set(OURS) == set(real) - {"data", "unknown"}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_names_lead_to_ours(name: str) -> None:
    assert name not in OURS
    with pytest.raises(
        UsageError, match=f"unknown parameter '{name}': here it is called"
    ) as caught:
        refuse_unknown({name: 1})
    assert str(caught.value).endswith(FOREIGN[name])


@pytest.mark.parametrize("call", [plan, lambda **kw: select_partitions([], **kw)])
def test_both_entrances_refuse(call: Any) -> None:
    for name, ours in (("privacy_unit_column", "user"), ("max_groups_contributed", "max_items")):
        with pytest.raises(UsageError, match=f"'{name}': here it is called {ours}"):
            call(rho=1, delta=0.1, **{name: 1})
    with pytest.raises(UsageError, match="'epsiln': did you mean 'epsilon'"):
        call(epsiln=1, delta=0.1)


def test_nothing_unknown() -> None:
    refuse_unknown({})

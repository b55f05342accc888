"""Events: an accountant of dp-accounting finds no less than the guarantee, and not much more."""

from typing import Any

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dp_sips import UsageError, plan
from dp_sips.privacy import events
from dp_sips.privacy.guarantee import Guarantee, SamplerCost


def accounted(*pairs: tuple[Any, float], delta: float) -> float:
    """Return what a PLD accountant says of events, at what their δ leave of a target."""
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for event, _ in pairs:
        accountant.compose(event)
    return float(accountant.get_epsilon(delta - sum(own for _, own in pairs)))


class TestOneRelease:
    @pytest.mark.parametrize("name", ["sips", "weighted-gaussian", "matching", "gw", "single"])
    def test_is_what_was_spent(self, name: str) -> None:
        guarantee = plan(
            name, epsilon=1, delta=1e-6, max_items=1 if name == "single" else None
        ).guarantee
        pair = guarantee.dp_event()
        spent = guarantee.epsilon(delta=1.1e-6)
        assert spent * (1 - 1e-9) <= accounted(pair, delta=1.1e-6) <= 1.002 * spent + 4e-4

    @pytest.mark.parametrize("name", ["auto", "cumulative", "sips-rule", "sips"])
    def test_is_a_point_where_a_delta_is_named(self, name: str) -> None:
        guarantee = plan(name, epsilon=1, delta=1e-6, max_items=100).guarantee
        event, delta = guarantee.dp_event(delta=1e-6)
        assert delta == 1e-6
        assert isinstance(event, dp_event.DiscreteLaplaceDpEvent)
        spent = guarantee.epsilon(delta=1e-6)
        found = accounted((event, delta), delta=1e-6 + 1e-12)
        assert spent * (1 - 1e-9) <= found <= spent + 2e-4

    def test_a_curve_needs_a_delta(self) -> None:
        guarantee = plan("cumulative", epsilon=1, delta=1e-6).guarantee
        with pytest.raises(UsageError, match="name a delta"):
            guarantee.dp_event()
        with pytest.raises(UsageError):
            plan("sips", epsilon=1, delta=1e-6).guarantee.dp_event(delta=1e-9)

    def test_other_accountants_take_it_too(self) -> None:
        event, delta = Guarantee(0.02, 1e-7, SamplerCost(0.0, 0.0)).dp_event()
        assert RdpAccountant().compose(event).get_epsilon(1e-6 - delta) > 0.8

    def test_what_has_no_noise_is_nothing(self) -> None:
        event, _ = Guarantee(0.0, 1e-7, SamplerCost(0.0, 0.0)).dp_event()
        assert event == dp_event.ComposedDpEvent([])


def test_releases_compose_tightly() -> None:
    """Two Gaussian releases cost √2 of one in ε, about; less would be wrong."""
    guarantee = plan("sips", epsilon=1, delta=1e-6).guarantee
    both = Guarantee(2 * guarantee.rho, 2 * guarantee.threshold_delta, SamplerCost(0.0, 0.0))
    found = accounted(guarantee.dp_event(), guarantee.dp_event(), delta=2e-6)
    assert both.epsilon(delta=2e-6) <= found <= 1.01 * both.epsilon(delta=2e-6)


def test_an_answer_has_two_losses() -> None:
    """A smaller parameter than ε would be caught."""
    event, _ = events.point_event(0.5, 1e-6)
    pair = (event, 0.0)
    assert accounted(pair, delta=1e-9) == pytest.approx(0.5, abs=2e-4)
    weaker = dp_event.DiscreteLaplaceDpEvent(0.45, 1)
    assert accounted((weaker, 0.0), delta=1e-9) < 0.46

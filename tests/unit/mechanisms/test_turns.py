"""What one user pays, in integers, against exact arithmetic."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_sips.errors import UsageError
from dp_sips.mechanisms.turns import (
    L1,
    L2,
    MOST_USERS,
    Proportional,
    sensitivity,
    unit_bits,
)

powers = st.sampled_from([L1, L2])
gap_lists = st.lists(st.integers(0, 2**60), min_size=1, max_size=20)


class TestPayments:
    @given(powers, gap_lists, st.integers(36, 52))
    def test_norm_and_gaps(self, power: int, gaps: list[int], bits: int) -> None:
        budget = 1 << bits
        payments = Proportional(power, 2**60, bits).payments(gaps)
        assert sum(payment**power for payment in payments) <= budget**power
        assert all(0 <= payment <= gap for payment, gap in zip(payments, gaps, strict=True))

    @given(powers, gap_lists, st.integers(36, 52))
    def test_are_as_close_to_exact_as_rounding_says(
        self, power: int, gaps: list[int], bits: int
    ) -> None:
        """Off by at most √k + 8 units in L2 and by k + 8 in L1: the proof's "Rounding"."""
        payments = Proportional(power, 2**60, bits).payments(gaps)
        budget, whole = 1 << bits, sum(gap**power for gap in gaps)
        if whole <= budget**power:
            assert payments == gaps
            return
        # An integer root of so many digits that its own error is nothing.
        norm = Fraction(math.isqrt(whole << 400), 1 << 200) if power == L2 else Fraction(whole)
        off = [gap * budget / norm - p for gap, p in zip(gaps, payments, strict=True)]
        assert min(off) >= 0
        room = (math.sqrt(len(gaps)) if power == L2 else len(gaps)) + 8
        assert sum(x**power for x in off) <= Fraction(room) ** power

    @given(powers, st.integers(1, 1000), st.floats(0.5, 1000), st.integers(36, 52))
    def test_alike_items_get_something_each(
        self, power: int, items: int, target: float, bits: int
    ) -> None:
        full = min(2**60, round(target * 2**bits))
        payments = Proportional(power, full, bits).payments([full] * items)
        assert min(payments) > 0
        assert max(payments) * items ** (1 / power) <= (1 << bits) * (1 + 1e-12)

    def test_nothing_to_pay(self) -> None:
        assert Proportional(L2, 5, 40).payments([0, 0]) == [0, 0]
        assert Proportional(L1, 5, 40).payments([]) == []


class TestUnits:
    @given(powers, st.floats(1e-3, 2**20), st.integers(1, 2**20))
    def test_targets_and_sums_fit(self, power: int, largest: float, items: int) -> None:
        try:
            bits = unit_bits(power, largest, items)
        except UsageError:
            assert power == L2
            assert items * largest**2 > 2**45
            return
        assert 36 <= bits <= 52
        target = math.ceil(largest * 2**bits)
        assert target < 2**64
        assert items * target**power < 2**128

    def test_usual_plans_have_the_smallest_unit(self) -> None:
        assert unit_bits(L2, 100.0, 100) == 52
        assert unit_bits(L1, 100.0, 100) == 52

    def test_a_target_that_is_too_large(self) -> None:
        with pytest.raises(UsageError, match=r"weight of about 5e\+08.*max_items below 7"):
            unit_bits(L2, 1e9, 7)


class TestSensitivity:
    @pytest.mark.parametrize("power", [L1, L2])
    def test_covers_the_rounding_of_every_user(self, power: int) -> None:
        for bits, items in ((52, 1), (52, 100), (40, 1000)):
            each = (items if power == L1 else math.sqrt(items)) + 8
            exact = 1 + Fraction(2 * MOST_USERS) * Fraction(each) / 2**bits
            assert sensitivity(power, bits, items) == pytest.approx(float(exact), rel=1e-12)

    def test_is_next_to_nothing_where_it_matters(self) -> None:
        assert sensitivity(L2, 52, 100) < 1.00004
        assert sensitivity(L1, 52, 100) < 1.0003

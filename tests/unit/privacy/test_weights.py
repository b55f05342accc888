"""Fixed-point weights: the floor is exact, and the L2 norm is at most 1 in integers."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dp_sips.privacy.weights import UNIT, WHOLE_CLAIM, claimed_weight, weight, weight_table


def is_floor(count: int, found: int) -> bool:
    """Whether found = floor(2³⁰/√count): found²·count ≤ 2⁶⁰ < (found + 1)²·count."""
    return found * found * count <= UNIT * UNIT < (found + 1) ** 2 * count


def test_every_count_up_to_a_million() -> None:
    assert all(is_floor(count, weight(count)) for count in range(1, 10**6 + 1))


@given(st.integers(1, 2**61))
def test_any_count(count: int) -> None:
    assert is_floor(count, weight(count))


def test_one_item_gets_all_and_too_many_get_nothing() -> None:
    assert UNIT == 2**30
    assert weight(1) == UNIT
    assert weight(4) == UNIT // 2
    assert weight(2**60) == 1
    assert weight(2**60 + 1) == 0


def test_table_is_the_function() -> None:
    table = weight_table(2000)
    assert table.dtype == "uint64"
    assert table.tolist() == [0, *(weight(count) for count in range(1, 2001))]
    assert weight_table(1).tolist() == [0, UNIT]


@given(st.integers(1, 10**6), st.integers(1, 30), st.integers(1, 100))
def test_other_powers_are_floors_too(count: int, step_bits: int, hundredths: int) -> None:
    """w = floor(2^b count^−γ) with γ = p/q: w^q count^p ≤ 2^bq < (w + 1)^q count^p."""
    gamma = Fraction(hundredths, 100)
    found = weight(count, step_bits, gamma) >> (30 - step_bits)
    p, q = gamma.numerator, gamma.denominator
    assert found**q * count**p <= 2 ** (step_bits * q) < (found + 1) ** q * count**p


CLAIM_LISTS = st.lists(st.integers(1, WHOLE_CLAIM), min_size=1, max_size=400)


def norm(weights: list[int]) -> int:
    return sum(weight * weight for weight in weights)


@given(CLAIM_LISTS, st.integers(1, 15))
def test_claims_have_a_norm_of_at_most_one(claims: list[int], step_bits: int) -> None:
    weights = [claimed_weight(claim, sum(claims), step_bits) for claim in claims]
    assert norm(weights) <= 4**step_bits
    assert norm([weight + 1 for weight in weights]) > 4**step_bits


@given(st.integers(1, WHOLE_CLAIM), st.integers(1, 2**24), st.integers(1, 15))
def test_claimed_weights_are_floors(claim: int, total: int, step_bits: int) -> None:
    found = claimed_weight(claim, total, step_bits)
    assert found**2 * total <= claim * 4**step_bits < (found + 1) ** 2 * total


@given(st.integers(1, 2**20))
def test_whole_claims_are_equal_shares(count: int) -> None:
    assert claimed_weight(WHOLE_CLAIM, WHOLE_CLAIM * count, 12) == weight(count) >> 18
    assert claimed_weight(1, WHOLE_CLAIM * count, 12) >= 1

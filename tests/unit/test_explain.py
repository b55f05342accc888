"""A plan's own words hold its numbers. How they are put is free to change."""

import pytest

from dp_sips import Sips, plan


def test_rho() -> None:
    made = plan("sips", rho=0.1, delta=1e-5)
    words = made.explain()
    assert words.startswith("sips with rho = 0.1, delta = 1e-05, at most 100 items of each user.")
    assert "1e-05-approximate 0.1-zCDP" in words
    for number in ("45.7100", "25.5406", "14.2554"):
        assert number in words
    for r in made.rounds:
        assert f"{r.sigma:.4f}" in words
        assert f"{r.rho:.4g}" in words
        assert f"{r.delta:.3g}" in words


def test_epsilon() -> None:
    made = plan("weighted-gaussian", epsilon=1.5, delta=1e-6)
    words = made.explain()
    assert "(1.5, 1e-06)-" in words
    assert str(made.guarantee) in words


@pytest.mark.parametrize(
    ("max_items", "sizes"),
    [(100, [1, 10, 100]), (1, [1]), (7, [1, 7]), (10, [1, 10]), (500, [1, 10, 100])],
)
def test_chances(max_items: int, sizes: list[int]) -> None:
    made = plan(Sips(rounds=2), epsilon=1.0, delta=1e-6, max_items=max_items)
    words = " ".join(made.explain().split())
    assert words.count("With these settings") == len(sizes)
    for size in sizes:
        half, most = (f"{made.users_needed(p, size):,}" for p in (0.5, 0.95))
        plural = "" if size == 1 else "s"
        assert (
            f"needs about {half} users (each holding {size} item{plural}) for a 50 % chance, "
            f"{most} for 95 %." in words
        )


def test_fits_a_terminal() -> None:
    for line in plan("sips", epsilon=1.0, delta=1e-6).explain().splitlines():
        assert len(line) <= 80

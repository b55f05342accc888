"""Mechanisms side by side, and figures of plans."""

import subprocess
import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

import dp_sips
from dp_sips import Sips


@pytest.fixture(autouse=True)
def _no_windows() -> Iterator[None]:
    mpl.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def compared() -> dp_sips.Comparison:
    return dp_sips.compare("matching", "sips", "weighted-gaussian", "single", epsilon=1, delta=1e-6)


def test_the_table_has_the_numbers_of_the_plans(compared: dp_sips.Comparison) -> None:
    sips = dp_sips.plan("sips", epsilon=1, delta=1e-6)
    rows = {row["mechanism"]: row for row in compared.table}
    assert rows["sips"]["10 items"] == sips.users_needed(0.95, 10)
    assert rows["single"]["10 items"] is None
    for shown in (str(compared), compared._repr_html_()):
        assert "weighted-gaussian" in shown
        assert f"{rows['matching']['100 items']:,}" in shown
        assert "–" in shown


def test_the_usual_ones_without_names() -> None:
    assert "cumulative" in dp_sips.compare(epsilon=1, delta=1e-5).plans
    assert "sips" in dp_sips.compare(rho=0.1, delta=1e-5).plans


def test_parameters_tell_mechanisms_apart() -> None:
    made = dp_sips.compare(Sips(rounds=2), Sips(rounds=5), epsilon=1, delta=1e-6)
    assert len(made.plans) == 2


def test_the_comparison_draws_a_line_for_each_that_can(compared: dp_sips.Comparison) -> None:
    labels = [line.get_label() for line in compared.plot(items_per_user=10).get_lines()]
    assert labels == ["matching", "sips", "weighted-gaussian"]


def test_a_plan_draws_its_chances() -> None:
    plan = dp_sips.plan("weighted-gaussian", epsilon=1, delta=1e-6, max_items=50)
    axes = plan.plot()
    lines = axes.get_lines()
    assert [line.get_label() for line in lines] == ["1 item per user", "10 items per user"]
    for line, items in zip(lines, (1, 10), strict=True):
        users, chances = line.get_data()
        assert chances[-1] > 0.95
        assert (np.diff(chances) >= 0).all()
        middle = len(users) // 2
        assert chances[middle] == plan.release_probability(int(users[middle]), items)
    assert plan.plot(ax=axes) is axes


def test_without_matplotlib_an_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["matplotlib.pyplot"] = None
import dp_sips
try:
    dp_sips.plan("sips", epsilon=1, delta=1e-6).plot()
except dp_sips.UsageError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "plots need Matplotlib: pip install 'dp-sips[plot]'\n"

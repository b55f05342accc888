"""Ledgers: booked before data is read, refused above the total, crash-safe and locked."""

import json
import subprocess
import sys
from collections.abc import Iterator
from operator import add, sub
from pathlib import Path
from typing import Any

import pytest

import dp_sips
from dp_sips import Budget, Ledger, count_users, plan, select_partitions
from dp_sips.errors import InputError, OutputError, UsageError

DATA = {user: ["jam"] for user in range(400)}
SMALL: dict[str, Any] = {"epsilon": 0.4, "delta": 1e-6, "mechanism": "gw"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "budget.json", epsilon=1.0, delta=1e-5)


def untouched() -> Iterator[Any]:
    """Fail when the first row is asked for."""
    rows: list[tuple[Any, ...]] = [()]
    for row in rows:
        assert row, "data was read"
        yield row


class TestBooking:
    def test_each_release_is_an_entry(self, ledger: Ledger) -> None:
        select_partitions(DATA, ledger=ledger.path, **SMALL)
        count_users(DATA, epsilon=0.3, delta=1e-6, mechanism="sips", ledger=ledger)
        first, second = ledger.entries
        assert first["what"] == {
            "release": "items", "user": "user", "items": ["item"], "mechanism": "gw",
        }  # fmt: skip
        assert first["asked"] == {"epsilon": 0.4, "delta": 1e-6}
        assert second["what"]["release"] == "counts"
        assert (first["number"], second["number"]) == (1, 2)
        spent = ledger.summary()["spent"]
        assert 0.4 < spent["epsilon"] <= 0.7
        assert spent["delta"] <= 2e-6

    def test_refuses_what_would_exceed_the_total_without_reading(self, ledger: Ledger) -> None:
        for _ in range(2):
            select_partitions(DATA, ledger=ledger, **SMALL)
        before = Path(ledger.path).read_bytes()
        with pytest.raises(
            UsageError, match=r"not enough left .* total, \(1, 1e-05\), about 0.2 of"
        ):
            select_partitions(untouched(), ledger=ledger, **SMALL)
        assert Path(ledger.path).read_bytes() == before

    def test_all_of_it_can_be_spent(self, ledger: Ledger) -> None:
        select_partitions(DATA, ledger=ledger, epsilon=1.0, delta=1e-5)
        assert ledger.summary()["left"]["epsilon"] < 1e-6

    def test_comes_before_the_first_row(self, ledger: Ledger) -> None:
        with pytest.raises(AssertionError, match="data was read"):
            select_partitions(untouched(), ledger=ledger, **SMALL)
        assert len(ledger.entries) == 1

    @pytest.mark.parametrize("release", [select_partitions, count_users])
    def test_errors_and_interrupts_say_that_it_stays(self, ledger: Ledger, release: Any) -> None:
        def interrupted() -> Iterator[Any]:
            yield 1, "jam"
            raise KeyboardInterrupt

        bad: list[tuple[Any, Any]] = [
            (InputError, {1: ["jam", None]}),
            (KeyboardInterrupt, interrupted()),
        ]
        for kind, data in bad:
            with pytest.raises(kind) as raised:
                release(data, ledger=ledger, **SMALL)
            (note,) = raised.value.__notes__
            assert note.startswith(f"The release stays booked in {ledger.path}, ")
        assert len(ledger.entries) == 2
        with pytest.raises(UsageError, match="not enough left") as refused:
            release({1: ["jam", None]}, ledger=ledger, **SMALL)
        assert not hasattr(refused.value, "__notes__")

    def test_nothing_stays_of_a_test(self, ledger: Ledger) -> None:
        with pytest.raises(InputError) as raised:
            select_partitions({1: [None]}, ledger=ledger, seed=1, insecure_test=True, **SMALL)
        assert not hasattr(raised.value, "__notes__")

    def test_a_check_refuses_as_booking_does_and_books_nothing(self, ledger: Ledger) -> None:
        small, large = (plan("gw", epsilon=e, delta=1e-6).guarantee for e in (1.0, 1.5))
        ledger.check(small)
        with pytest.raises(UsageError, match="not enough left"):
            ledger.check(large)
        assert ledger.entries == []

    def test_a_run_is_booked_once(self, ledger: Ledger) -> None:
        made = plan("gw", epsilon=0.4, delta=1e-6)
        for run_id in ("a", "a", "b", "a"):
            ledger.book(made.guarantee, made.asked, {"release": "items"}, run_id)
        assert [entry["run"] for entry in ledger.entries] == ["a", "b"]

    def test_bad_usage_books_nothing(self, ledger: Ledger) -> None:
        with pytest.raises(InputError):
            select_partitions(DATA, ledger=ledger, user="nobody", item="nothing", **SMALL)
        assert ledger.entries == []

    def test_test_seeds_book_nothing(self, ledger: Ledger) -> None:
        made = select_partitions(DATA, ledger=ledger, seed=1, insecure_test=True, **SMALL)
        assert not made.private
        assert ledger.entries == []

    def test_many_gaussian_releases_fit_where_addition_would_not(self, tmp_path: Path) -> None:
        made = [
            Ledger.create(tmp_path / f"{planned}.json", epsilon=1, delta=1e-5, planned=planned)
            for planned in (True, False)
        ]
        spent = plan("sips", epsilon=0.25, delta=1e-6)
        booked = []
        for one in made:
            while True:
                try:
                    one.book(spent.guarantee, spent.asked, {"release": "items"})
                except UsageError:
                    break
            booked.append(len(one.entries))
        assert booked[1] == 4
        assert booked[0] >= 8

    def test_a_look_is_booked_at_its_worst(self, ledger: Ledger) -> None:
        made = select_partitions(DATA, ledger=ledger, epsilon=0.5, delta=1e-6)
        assert made.certificate["chosen_by"] is not None
        (entry,) = ledger.entries
        assert entry["spent"] == dict(
            zip(("epsilon", "delta"), made.guarantee.stated(), strict=True)
        )


class TestFile:
    def test_people_can_read_it(self, tmp_path: Path) -> None:
        path = tmp_path / "b.json"
        Ledger.create(path, epsilon=2, delta=1e-5)
        select_partitions(DATA, ledger=Ledger(path, "the weekly list"), epsilon=1, delta=1e-6)
        text = path.read_text("utf-8")
        assert '"purpose": "the weekly list"' in text
        assert len(text.splitlines()) < 50
        assert json.loads(text)["total"] == {"epsilon": 2.0, "delta": 1e-5}

    @pytest.mark.parametrize("planned", [True, False])
    def test_an_entry_says_what_is_spent_so_far(self, tmp_path: Path, planned: Any) -> None:
        made = Ledger.create(tmp_path / "b.json", epsilon=2, delta=1e-5, planned=planned)
        for _ in range(2):
            select_partitions(DATA, ledger=made, **SMALL)
            spent = made.summary()["spent"]
            assert made.entries[-1]["spent_so_far"] == {
                "epsilon_at_total_delta": spent["epsilon"],
                "delta_at_total_epsilon": spent["delta"],
            }
        assert made.entries[0]["spent_so_far"]["epsilon_at_total_delta"] < 0.401

    def test_entries_that_said_it_otherwise_still_count(self, ledger: Ledger) -> None:
        select_partitions(DATA, ledger=ledger, **SMALL)
        held = json.loads(Path(ledger.path).read_text())
        held["entries"][0]["spent_so_far"] = {"epsilon": 1.0, "delta": 1e-6}
        del held["entries"][0]["run"]
        Path(ledger.path).write_text(json.dumps(held))
        select_partitions(DATA, ledger=ledger, **SMALL)
        assert ledger.summary()["spent"]["epsilon"] == pytest.approx(0.8)

    def test_is_not_replaced(self, ledger: Ledger) -> None:
        with pytest.raises(UsageError, match="exists: book on it as it is, or name another file"):
            Ledger.create(ledger.path, epsilon=5, delta=1e-5)

    def test_a_missing_one(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no ledger .*/b\.json: create it"):
            select_partitions(untouched(), ledger=tmp_path / "b.json", **SMALL)
        assert not list(tmp_path.iterdir())  # no lock beside a name that was mistyped

    @pytest.mark.parametrize("total", [{"epsilon": 0, "delta": 1e-5}, {"epsilon": 1, "delta": 1}])
    def test_bad_totals(self, tmp_path: Path, total: Any) -> None:
        with pytest.raises(UsageError, match="must be"):
            Ledger.create(tmp_path / "b.json", **total)
        assert not (tmp_path / "b.json").exists()

    @pytest.mark.parametrize(
        "text",
        [
            "not JSON", "[]", '{"kind": "a list"}', '{"kind": "dp-sips ledger", "format": 2}',
            '{"kind": "dp-sips ledger", "format": 1}',
            '{"kind": "dp-sips ledger", "format": 1, "total": 1, "entries": []}',
        ],
    )  # fmt: skip
    def test_what_is_not_a_ledger(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "b.json"
        path.write_text(text)
        with pytest.raises(InputError, match="ledger"):
            select_partitions(untouched(), ledger=path, **SMALL)
        assert path.read_text() == text

    def test_other_kinds_of_parameter(self) -> None:
        wrong: Any = 3
        with pytest.raises(UsageError, match="ledger must be a path or a Ledger, got int"):
            select_partitions(untouched(), ledger=wrong, **SMALL)


class TestCrashes:
    def test_a_failing_disk_leaves_the_old_file_and_no_release(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = Path(ledger.path).read_bytes()

        def fails(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", fails)
        with pytest.raises(OutputError, match="No space left"):
            select_partitions(untouched(), ledger=ledger, **SMALL)
        monkeypatch.undo()
        assert Path(ledger.path).read_bytes() == before
        names = {path.name for path in Path(ledger.path).parent.iterdir()}
        assert names == {"budget.json", ".budget.json.lock"}
        select_partitions(DATA, ledger=ledger, **SMALL)  # the lock is free

    def test_processes_at_the_same_time_book_one_after_the_other(self, tmp_path: Path) -> None:
        path = tmp_path / "b.json"
        Ledger.create(path, epsilon=1, delta=1e-4)
        script = (
            "import dp_sips\n"
            "made = dp_sips.plan('gw', epsilon=0.1, delta=1e-6)\n"
            f"ledger, booked = dp_sips.Ledger({str(path)!r}), 0\n"
            "for _ in range(4):\n"
            "    try:\n"
            "        ledger.book(made.guarantee, made.asked, {'release': 'items'})\n"
            "        booked += 1\n"
            "    except dp_sips.UsageError:\n"
            "        pass\n"
            "print(booked)\n"
        )
        started = [
            subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        booked = [int(process.communicate()[0]) for process in started]
        assert sum(booked) == 10
        assert [entry["number"] for entry in Ledger(path).entries] == list(range(1, 11))


class TestBudgets:
    def test_arithmetic_errs_on_the_private_side(self) -> None:
        whole, part = Budget(0.3, 1e-5), Budget(0.1, 1e-6)
        rest = whole - part
        again = rest + part
        assert again.rho <= whole.rho * (1 + 1e-15)
        assert again.rho == pytest.approx(whole.rho)
        assert again.delta == pytest.approx(whole.delta)
        first, second = whole.split([1, 2])
        assert (first + second).rho <= whole.rho * (1 + 1e-15)

    def test_nothing_left(self) -> None:
        for other in (Budget(0.1, 1e-7), Budget(0.1, 1e-6)):
            with pytest.raises(UsageError, match=r"no rho is left of 0\.1 after 0\.1: spend less"):
                Budget(0.1, 1e-6) - other
        with pytest.raises(UsageError, match="no delta is left of 1e-06 after 1e-06"):
            Budget(0.1, 1e-6) - Budget(0.05, 1e-6)

    def test_sums(self) -> None:
        part = Budget(0.1, 1e-6)
        assert sum([part, part]) == part + part
        assert sum([part]) == part

    def test_what_is_no_budget(self) -> None:
        part: Any = Budget(0.1, 1e-6)
        for operator, one, other in ((add, part, 1), (add, 1, part), (sub, part, 0.05)):
            with pytest.raises(TypeError, match="unsupported operand"):
                operator(one, other)
        with pytest.raises(UsageError, match=r"shares must be a list, such as \[1, 1\] .* got 2"):
            part.split(2)

    def test_is_accepted_where_numbers_are(self) -> None:
        budget = Budget.from_epsilon(1.0, 1e-6)
        numbers: Any = {"rho": budget.rho, "delta": budget.delta}
        assert plan("sips", budget=budget) == plan("sips", **numbers)
        made = select_partitions(DATA, budget=budget, mechanism="sips")
        assert made.certificate["asked"] == {"epsilon": None, **numbers}
        counts = count_users(DATA, budget=budget, mechanism="sips")
        assert counts.certificate["asked"]["rho"] == budget.rho
        compared = dp_sips.compare("sips", "gw", budget=budget)
        assert compared.table == dp_sips.compare("sips", "gw", **numbers).table
        assert "sips-rule" not in dp_sips.compare(budget=budget).plans

    @pytest.mark.parametrize("name", ["sips", "cumulative", "gw", "matching"])
    @pytest.mark.parametrize("budget", [Budget(0.1, 1e-6), Budget(0.005, 3e-9), Budget(2.0, 1e-4)])
    def test_a_ledger_of_a_budget_has_room_for_it_once(
        self, tmp_path: Path, name: str, budget: Budget
    ) -> None:
        made = Ledger.create(tmp_path / "b.json", budget=budget)
        total = made.summary()["total"]
        assert total["delta"] == pytest.approx(2 * budget.delta)
        assert budget.delta_at(total["epsilon"]) <= total["delta"]
        select_partitions(DATA, budget=budget, mechanism=name, ledger=made)
        with pytest.raises(UsageError, match="not enough left"):
            select_partitions(untouched(), budget=budget + budget, mechanism=name, ledger=made)

    def test_a_total_is_given_once(self, tmp_path: Path) -> None:
        path, budget = tmp_path / "b.json", Budget(0.1, 1e-6)
        with pytest.raises(UsageError, match="either a budget"):
            Ledger.create(path, budget=budget, delta=1e-6)
        with pytest.raises(UsageError, match="give either epsilon or rho"):
            Ledger.create(path)
        assert not path.exists()

    @pytest.mark.parametrize("more", [{"epsilon": 1.0}, {"delta": 1e-6}, {"rho": 0.1}])
    def test_not_both(self, more: Any) -> None:
        with pytest.raises(UsageError, match="either a budget"):
            plan("sips", budget=Budget(0.1, 1e-6), **more)

    def test_nothing_else(self) -> None:
        wrong: Any = (1.0, 1e-6)
        with pytest.raises(UsageError, match="budget must be a Budget, got tuple"):
            dp_sips.plan("sips", budget=wrong)

"""Parts of an audit side by side: the same rows in the same order, and errors that come through."""

import os
from functools import partial

import pytest

from dp_sips.auditing import Row
from dp_sips.auditing.run import Case, in_order


def row(found: float, alpha: float) -> list[Row]:
    """Return a row that knows its number, its alpha and its process."""
    facts = {"epsilon": 1.0, "delta": 1e-5, "max_items": 1, "at": 1.0, "trials": os.getpid()}
    names = {"mechanism": "m", "engine": "memory", "method": "exact", "family": "f"}
    return [Row(**names, **facts, found=found, promised=alpha)]  # type: ignore[arg-type]


def test_order_and_processes() -> None:
    cases = [Case(0, partial(row, number)) for number in range(20)]
    found = [one for rows in in_order(cases, 0.5, 2) for one in rows]
    assert [(one.found, one.promised) for one in found] == [(n, 0.5) for n in range(20)]
    assert os.getpid() not in {one.trials for one in found}
    alone = [one for rows in in_order(cases, 0.5, 1) for one in rows]
    assert {one.trials for one in alone} == {os.getpid()}


def test_cases_need_not_be_sent() -> None:
    secret = object()  # no other process would take it

    def run(alpha: float) -> list[Row]:
        return row(float(secret is not None), alpha)

    assert len(list(in_order([Case(0, run)] * 3, 0.5, 2))) == 3


def test_errors_come_through() -> None:
    def broken(alpha: float) -> list[Row]:
        raise ZeroDivisionError(alpha)

    with pytest.raises(ZeroDivisionError):
        list(in_order([Case(0, broken)], 0.5, 2))

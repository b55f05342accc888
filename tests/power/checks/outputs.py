"""What leaves beside the items: nothing that rows which are not released could have changed.

Popular items have so many holders, and rare ones so small a δ, that the release is the same with
and without a hostile user, except with a probability below 1e-9; seeds are fixed besides.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dp_sips import count_users, select_partitions

_OPTIONS: dict[str, Any] = {
    "user": "u",
    "item": "i",
    "epsilon": 2.0,
    "delta": 1e-12,
    "mechanism": "sips",
    "max_items": 5,
    "seed": 1,
    "insecure_test": True,
}
_POPULAR = ["tea", "apple", "zoo"]
_HOSTILE = ["007", "1e5", "aaa", "~~~", "2020-01-01"]


def _rows(*, hostile: bool, backwards: bool = False) -> list[tuple[str, str]]:
    rows = [(f"u{n}", item) for n in range(400) for item in _POPULAR]
    rows += [("new user", item) for item in _HOSTILE] if hostile else []
    return rows[::-1] if backwards else rows


def _table(rows: list[tuple[str, str]]) -> Any:
    return pa.table({"u": [user for user, _ in rows], "i": [item for _, item in rows]})


def sorted_output() -> None:
    """The items come sorted, whatever the order of rows, also as a dictionary."""
    for backwards in (False, True):
        table = _table(_rows(hostile=True, backwards=backwards))
        assert select_partitions(table, **_OPTIONS).items["i"].to_pylist() == sorted(_POPULAR)
        encoded = pa.table({"u": table["u"], "i": table["i"].dictionary_encode()})
        column = select_partitions(encoded, **_OPTIONS).items["i"].combine_chunks()
        assert column.dictionary.to_pylist() == sorted(_POPULAR)
        assert column.indices.to_pylist() == [0, 1, 2]
        _second_column(table)


def _second_column(table: Any) -> None:
    """The entries of a second column are not in the order of the rows, which the first decides."""
    opposite = {"apple": "z", "tea": "y", "zoo": "x"}
    second = pa.array([opposite.get(item, item) for item in table["i"].to_pylist()])
    both = table.append_column("j", second.dictionary_encode())
    found = select_partitions(both, **{**_OPTIONS, "item": ["i", "j"]}).items["j"].combine_chunks()
    assert found.dictionary.to_pylist() == ["x", "y", "z"]
    assert found.to_pylist() == ["z", "y", "x"]


def certificate_without_counts() -> None:
    """The certificate is the same with and without a hostile user, except for the time of day."""
    for run in (select_partitions, count_users):
        options = dict(_OPTIONS)
        if run is count_users:
            options.pop("max_items")
        found = [run(_table(_rows(hostile=h)), **options).to_json() for h in (False, True)]
        one, other = ({**json.loads(text), "time": None} for text in found)
        assert one == other
        assert "400" not in json.dumps(one)


def categories_are_released_items() -> None:
    """A categorical column names no value that is not released, and keeps no code of the data."""
    for backwards in (False, True):
        rows = _rows(hostile=True, backwards=backwards)
        frame = pd.DataFrame(rows, columns=["u", "i"]).astype({"i": "category"})
        found = select_partitions(frame, **_OPTIONS).items["i"]
        assert found.cat.categories.tolist() == sorted(_POPULAR)
        assert found.cat.codes.tolist() == [0, 1, 2]


def types_are_not_inferred() -> None:
    """CSV is text: one user with an odd value changes neither what ids mean nor the output's type.

    Users 1 and 01 are two users, and item 007 is not 7, whatever other rows hold.
    """
    digits = [(f"{n}", "7") for n in range(300)] + [(f"0{n}", "007") for n in range(300)]
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for name, more in (("without.csv", []), ("with.csv", [("x", "x")])):
            path = Path(folder, name)
            lines = [f"{user},{item}\n" for user, item in [*digits, *more]]
            path.write_text("u,i\n" + "".join(lines))
            found.append(select_partitions(str(path), **_OPTIONS).items)
    for items in found:
        assert items["i"].to_pylist() == ["007", "7"]
        assert items.schema.field("i").type == pa.string()


EVERY: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        sorted_output,
        certificate_without_counts,
        categories_are_released_items,
        types_are_not_inferred,
    )
}

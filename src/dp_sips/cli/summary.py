"""What a release did, in plain words: nothing that the release itself does not show."""

from dataclasses import asdict
from typing import Any, Final

from dp_sips.selection import Selection

_FEW: Final = 10
"""Released items below which the summary says where to find advice."""


def summary(selection: Selection, output: str | None, *, selected: bool = True) -> str:
    """Say how many items were released, where to, under which guarantee, and, if few, what helps.

    Nothing helps where the items were given, and not `selected`.

    Public: whether there is advice depends on the released items, what it says on parameters.
    """
    advice = _advice(selection) if selected else []
    told = (_released(selection, output), *_choice(selection), _guarantee(selection), *advice)
    return "\n".join(told)


def in_flags(name: str) -> str:
    """Return a parameter's name as it is typed here."""
    return "--" + name.replace("_", "-")


def _released(selection: Selection, output: str | None) -> str:
    count = selection.items.num_rows
    if count == 0:
        return "Released no items" + (f": wrote {output} without rows." if output else ".")
    items = "1 item" if count == 1 else f"{count:,} items"
    return f"Released {items}" + (f" to {output}." if output else ".")


def _choice(selection: Selection) -> list[str]:
    """Say what a private look at the data chose; near the border, the next run may differ."""
    look = selection.plan.chosen_by
    if look is None:
        return []
    levels = selection.certificate["levels"]
    chosen = ", and ".join(map(_of_level, levels)) if levels else selection.plan.mechanism.name
    return [f"By its private look at the data, {look['name']} chose {chosen}."]


def _of_level(level: dict[str, Any]) -> str:
    """Say what a level was selected by."""
    if "columns" in level:
        items = ", ".join(level["columns"])
    else:
        items = "single words" if level["words"] == 1 else f"sequences of {level['words']} words"
    return f"{level['mechanism']} for {items}"


def _guarantee(selection: Selection) -> str:
    if not selection.private:
        return "NOT PRIVATE: made with a test seed. Do not publish these items."
    spent, *_ = str(selection.guarantee).split("; ")
    asked = f"{selection.plan.asked} as asked"
    same = str(selection.plan.asked).startswith(spent.removesuffix("DP"))
    said = f"{asked} and as spent" if same else f"{spent} as spent, {asked}"
    return f"Guarantee: {said},\nfor one user with all of their items."


def _advice(selection: Selection) -> list[str]:
    count = selection.items.num_rows
    if count == 0:
        return [selection.plan.levers(in_flags)]
    if count < _FEW:
        asked = " ".join(
            f"--{name} {value:g}" for name, value in asdict(selection.plan.asked).items()
        )
        return [f"Fewer than you expected? dp-sips plan --levers {asked} shows what an item needs."]
    return []

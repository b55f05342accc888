"""What a release did, in plain words: nothing that the release itself does not show."""

from dp_sips.selection import Selection


def summary(selection: Selection, output: str | None) -> str:
    """Say how many items were released, where to, and under which guarantee."""
    return "\n".join((_released(selection, output), _guarantee(selection)))


def _released(selection: Selection, output: str | None) -> str:
    count = selection.items.num_rows
    if count == 0:
        needed = selection.plan.users_needed(0.5)
        return (
            "Released no items"
            + (f" (wrote {output} without rows)" if output else "")
            + f": with these settings, one needs about {needed:,} users or more."
        )
    items = "1 item" if count == 1 else f"{count:,} items"
    return f"Released {items}" + (f" to {output}." if output else ".")


def _guarantee(selection: Selection) -> str:
    if not selection.private:
        return "NOT PRIVATE: made with a test seed. Do not publish these items."
    spent, *_ = str(selection.guarantee).split("; ")
    return (
        f"Guarantee: {spent} as spent, {selection.plan.asked} as asked,\n"
        "for one user with all of their items."
    )

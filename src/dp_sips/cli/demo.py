"""dp-sips demo: a small generated data set, a release, and what became of everything."""

import argparse
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dp_sips.cli.outcome import Outcome
from dp_sips.cli.parser import Parser
from dp_sips.cli.searches import PEOPLE, searches
from dp_sips.cli.streams import emit
from dp_sips.errors import UsageError
from dp_sips.output import check_output, write_items
from dp_sips.plan import Plan
from dp_sips.select import select_partitions
from dp_sips.selection import Selection

_EPSILON, _DELTA = 2.0, 1e-5
_SEARCHES = 10
"""Roughly what a person makes: public knowledge, in this story."""
_COMMAND = (
    "  dp-sips select searches.csv --user person --item search \\\n"
    f"      --epsilon {_EPSILON:g} --delta {_DELTA:g} --items-per-user {_SEARCHES} -o released.csv"
)


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = "examples:\n  dp-sips demo\n  dp-sips demo --keep demo-files"
    parser.add_argument("--keep", metavar="DIR", help="keep the data and the release in DIR")


def run(args: argparse.Namespace) -> None:
    """Generate, select with three mechanisms, and explain."""
    with _folder(args.keep) as folder:
        data, released = folder / "searches.csv", folder / "released.csv"
        for path in (data, released):
            if path.exists():
                raise UsageError(f"{path} exists: --keep another folder")
            check_output(path)
        table = searches()
        write_items(table, data)
        selection = _select(data, "auto")
        write_items(selection.items, released)
        outcome = Outcome(table, _items(selection))
        rivals = [len(_items(_select(data, name))) for name in ("weighted-gaussian", "sips")]
    parts = (_data(outcome), _question(selection.plan), _answer(outcome), _rivals(outcome, *rivals))
    emit("\n\n".join(parts))
    if args.keep:
        emit(f"\nThe data is in {data}, the release in {released}.")


@contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    """Give a folder that stays if it has a name."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="dp-sips-demo-") as folder:
            yield Path(folder)
        return
    try:
        Path(keep).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{keep} cannot be made a folder: {error.strerror}") from error
    yield Path(keep)


def _select(data: Path, mechanism: str) -> Selection:
    return select_partitions(
        data,
        user="person",
        item="search",
        epsilon=_EPSILON,
        delta=_DELTA,
        items_per_user=_SEARCHES if mechanism == "auto" else None,
        mechanism=mechanism,
        progress=False,
    )


def _items(selection: Selection) -> frozenset[str]:
    return frozenset(selection.items.column("search").to_pylist())


def _data(outcome: Outcome) -> str:
    different = f"{len(outcome.people):,}"
    return f"""\
THE DATA
{PEOPLE:,} people have searched the web for {different} different things. We would like to
publish what was searched for. The data is generated, nobody in it is real: only
therefore may we look at it here, and show counts.
Publishing all of it would be a disaster: {len(outcome.telling):,} searches were made by one person
alone, and many of them say who it was:
{_listed(_examples(outcome.telling, 4))}
"Publish what at least 20 people searched for" does not help either: anyone who
knows of 19 learns about the twentieth from whether the search is there."""


def _question(plan: Plan) -> str:
    needed = plan.users_needed(0.5, items_per_user=10)
    return f"""\
THE QUESTION
{_COMMAND}
In words: release as many searches as possible, without revealing whether any
one person, with all of their searches, is in the data.
With or without that person, no outcome is more than e^{_EPSILON:g} times as likely, except
with a probability of {_DELTA:g}. That people make some {_SEARCHES} searches each is public.
The plan, known before any data is read: {len(plan.rounds)} rounds. A person with k searches gives
each a vote of 1/√k; the votes of all rounds so far, plus random noise, must reach
a threshold. What is found or hopeless is taken out, and people's votes go to the
others. A search of people with 10 searches each needs at most about {needed} of them
for an even chance."""


def _answer(outcome: Outcome) -> str:
    found, held = outcome.found, outcome.held_back
    safe = len([search for search in outcome.telling if search not in outcome.released])
    return f"""\
THE ANSWER
{len(found):,} searches are released. Some of them, from popular to rare:
{_listed(_counted(_examples(found, 5), outcome))}
{len(held):,} are held back: too few people made them for the noise to hide each one.
{_listed(_counted([*held[:2], *_examples(held[2:], 2)], outcome))}
Near the threshold chance decides, and that is what protects: run the demo again,
and other rare ones come out. Of the {len(outcome.telling):,} searches that one person alone made,
{safe:,} are held back."""


def _rivals(outcome: Outcome, one_round: int, sips: int) -> str:
    return f"""\
WHICH MECHANISM?
That was the recommended one: {len(outcome.released):,} searches. With the same budget, the paper's
--mechanism sips released {sips:,}, and its baseline of one round, weighted-gaussian,
{one_round:,}. One round spends much of people's votes on searches that are popular
anyway; sips finds those first, cheaply, and then looks at the rest; ours also
remembers what each round has learnt, and gives up on the hopeless.
(On real data, choose one beforehand: each release spends its own budget.)

Next: dp-sips plan --help, dp-sips select --help."""


def _examples(searches: list[str], count: int) -> list[str]:
    """Take a few, evenly spread."""
    step = max(1, (len(searches) - 1) // max(1, count - 1))
    return searches[::step][:count]


def _counted(searches: Iterable[str], outcome: Outcome) -> list[str]:
    return [f"{search:<44} made by {outcome.people[search]:>3}" for search in searches]


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)

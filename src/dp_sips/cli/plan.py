"""dp-sips plan: what a release will do, without any data."""

import argparse
from dataclasses import asdict
from typing import Any

import dp_sips
from dp_sips.cli.flags import add_mechanism, add_privacy, mechanism, planning
from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import emit, emit_json
from dp_sips.cli.summary import in_flags
from dp_sips.errors import UsageError

_EXAMPLES = """\
examples:
  dp-sips plan --epsilon 1 --delta 1e-6
  dp-sips plan weighted-gaussian --rho 0.1 --delta 1e-5 --max-items 50
  dp-sips plan --epsilon 1 --delta 1e-6 --users 200 --items-per-user 10
  dp-sips plan sips --epsilon 1 --delta 1e-6 --levers"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.add_argument("name", nargs="?", metavar="MECHANISM", help="the same as --mechanism")
    add_privacy(parser)
    add_mechanism(parser)
    group = parser.add_argument_group("chances")
    group.add_argument(
        "--users",
        type=int,
        metavar="N",
        help="show the chance of an item that N users hold, each with --items-per-user (1)",
    )
    group.add_argument(
        "--levers",
        action="store_true",
        help="show what other settings would change about the users that an item needs",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Print the plan."""
    if args.name and args.mechanism:
        raise UsageError(f"the mechanism is named twice, {args.name} and {args.mechanism}")
    chosen = mechanism(args.name or args.mechanism, args)
    made = dp_sips.plan(chosen, max_items=args.max_items, **planning(args, chosen))
    items = 1 if args.items_per_user is None else args.items_per_user
    chance = None if args.users is None else _chance(made, args.users, items)
    if args.json:
        emit_json(_facts(made) | ({"release_probability": chance} if chance else {}))
    else:
        parts = [made.explain()]
        parts += [_in_words(chance)] if chance else []
        parts += [made.levers(in_flags)] if args.levers else []
        emit("\n\n".join(parts))


def _chance(made: dp_sips.Plan, users: int, items: int) -> dict[str, Any]:
    probability = made.release_probability(users, items)
    return {"users": users, "items_per_user": items, "probability": probability}


def _in_words(chance: dict[str, Any]) -> str:
    users, items = chance["users"], chance["items_per_user"]
    return (
        f"An item that {users:,} user{'s' * (users != 1)} hold{'s' * (users == 1)}, "
        f"with {items:,} item{'s' * (items != 1)} each, is released "
        f"with a probability of {chance['probability']:.4g}."
    )


def _needed(made: dp_sips.Plan, probability: float, items: int) -> int | None:
    """Return how many users an item needs; None where no number is enough."""
    try:
        return made.users_needed(probability, items)
    except UsageError:
        return None


def _facts(made: dp_sips.Plan) -> dict[str, Any]:
    spent = made.guarantee
    epsilon, delta = spent.stated()
    return {
        "mechanism": made.mechanism.name,
        "asked": asdict(made.asked),
        "max_items": made.max_items,
        "min_users": made.min_users,
        "rounds": made.table(),
        "guarantee": {
            "epsilon": epsilon,
            "delta": delta,
            "statement": str(spent),
            "zcdp": {"rho": spent.rho, "delta": spent.threshold_delta},
            "sampler": asdict(spent.sampler),
        },
        "users_needed": [
            {"items_per_user": items, "probability": p, "users": _needed(made, p, items)}
            for items in (1, 10, 100)
            if items <= made.max_items
            for p in (0.5, 0.95)
        ],
    }

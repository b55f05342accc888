"""What Spark itself wrote down about a run: how much it exchanged, and that it never saw the key."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dp_sips import Sips, WeightedGaussian, select_partitions
from dp_sips.engines.spark import SparkEngine
from dp_sips.privacy.noise import Key

SEED = 12345


def events(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def executed_plans(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the last plan of each query: with adaptive execution, the one that ran."""
    plans = {}
    for event in events(folder):
        if "sparkPlanInfo" in event:
            plans[event["executionId"]] = event["sparkPlanInfo"]
    return plans


def shuffles(folder: Path, since: int) -> int:
    """Return how many exchanges wrote data, among the stages since an event."""
    stages = [e for e in events(folder)[since:] if e["Event"] == "SparkListenerStageCompleted"]
    wrote = "internal.metrics.shuffle.write.recordsWritten"
    return sum(
        any(a["Name"] == wrote and int(a["Value"]) > 0 for a in stage["Stage Info"]["Accumulables"])
        for stage in stages
    )


def exchanges(plan: dict[str, Any]) -> int:
    own = plan["nodeName"] in ("Exchange", "ShuffleExchange", "BroadcastExchange")
    return own + sum(map(exchanges, plan["children"]))


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("words", [False, True])
def test_few_exchanges(rounds: int, words: bool, spark: Any, event_log: Path) -> None:  # noqa: FBT001
    item = "concat('a long word, more than 15 bytes ', id % 40)" if words else "id % 40"
    frame = spark.range(4000).selectExpr("id % 100 AS u", f"{item} AS i")
    seen = len(events(event_log))
    known = set(executed_plans(event_log))
    mechanism = Sips(rounds=rounds) if rounds > 1 else WeightedGaussian()
    options: dict[str, Any] = {"user": "u", "item": "i", "rho": 0.5, "delta": 0.01}
    selection = select_partitions(frame, mechanism=mechanism, **options)
    assert selection.items.count() == 40
    plans = {n: plan for n, plan in executed_plans(event_log).items() if n not in known}
    moved = shuffles(event_log, seen)
    # The sums of Spark's own count(), which adds up a number from each partition, move no data.
    counts = sum(_is_count(plan) for plan in plans.values())
    assert rounds + 1 <= moved - counts <= rounds + 2


def _is_count(plan: dict[str, Any]) -> bool:
    """Whether a query only counts the rows of a cached table."""
    return "count(1)" in json.dumps(plan)


def test_the_key_is_nowhere_to_be_seen(spark: Any, event_log: Path, capfd: Any) -> None:
    frame = spark.range(4000).selectExpr("id % 100 AS u", "concat('a word of some length ', id % 40) AS i")
    options: dict[str, Any] = {"user": "u", "item": "i", "rho": 0.5, "delta": 0.01}
    engine = SparkEngine(explain=True)
    test: dict[str, Any] = {"seed": SEED, "insecure_test": True, "mechanism": "sips"}
    select_partitions(frame, engine=engine, **test, **options)
    shown = capfd.readouterr()
    written = "".join(file.read_text() for file in event_log.iterdir())
    settings = json.dumps(sorted(spark.sparkContext.getConf().getAll()))
    everything = (written + shown.out + shown.err + settings).lower()
    assert "mapinarrow" in everything
    for secret in secrets(Key.for_tests(SEED)):
        assert secret.lower() not in everything


def secrets(key: Key) -> list[str]:
    """Return the key and all that is derived from it, in every spelling that a log could have."""
    purposes = ["long users", "long items", "bounding users", "bounding items"]
    purposes += [f"noise of round {n}" for n in range(3)]
    found = []
    for secret in (key._secret, *map(key.derive, purposes)):
        found += [secret.hex(), base64.b64encode(secret).decode().rstrip("="), str(secret)]
        for start in range(0, len(secret), 8):
            word = int.from_bytes(secret[start : start + 8], "little")
            signed = int.from_bytes(secret[start : start + 8], "little", signed=True)
            found += [str(word), str(signed), f"{word:x}"]
    return [re.sub(r"^b'|'$", "", spelling) for spelling in found]

"""What Spark itself wrote down about a run: how much it moved, and that it saw no key."""

import base64
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from dp_sips import Cumulative, Sips, WeightedGaussian, select_partitions
from dp_sips.engines.spark import SparkEngine
from dp_sips.engines.spark.wire import bucket_labels
from dp_sips.privacy.noise import Key, Purpose

SEED = 12345
STAGE = "SparkListenerStageCompleted"


def events(folder: Path) -> list[dict[str, Any]]:
    lines = [line for file in folder.iterdir() for line in file.read_text().splitlines()]
    return [json.loads(line) for line in lines]


def exchanges(folder: Path, since: int) -> int:
    """Return how many exchanges moved data, of the plans that were executed since an event.

    An exchange is the end of a stage. Where each of its tasks wrote one row, Spark only counted.
    """
    wrote = "internal.metrics.shuffle.write.recordsWritten"
    ends = (e["Stage Info"] for e in events(folder)[since:] if e["Event"] == STAGE)
    written = [
        (stage, {value["Name"]: value["Value"] for value in stage["Accumulables"]})
        for stage in ends
    ]
    return sum(int(values.get(wrote, 0)) > stage["Number of Tasks"] for stage, values in written)


@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("words", [False, True])
def test_few_exchanges(rounds: int, words: bool, spark: Any, event_log: Path) -> None:  # noqa: FBT001
    """One by user, one for each round, and one for the values that are not in their blocks."""
    item = "if(id % 40 = 0, -id, id % 40)"  # some that only one user has, for every round
    item = f"concat('a long word, more than 15 bytes ', {item})" if words else item
    frame = spark.range(4000).selectExpr("id DIV 40 AS u", f"{item} AS i")
    seen = len(events(event_log))
    mechanism = Sips(rounds=rounds) if rounds > 1 else WeightedGaussian()
    options: dict[str, Any] = {"user": "u", "item": "i", "rho": 50, "delta": 1e-9}
    released = select_partitions(frame, mechanism=mechanism, **options).items
    assert exchanges(event_log, seen) == 1 + rounds + words
    assert released.count() == 39


def test_a_label_goes_to_its_own_partition(spark: Any) -> None:
    labels = bucket_labels(7).tolist()
    places = spark.createDataFrame([(label,) for label in labels], "label int")
    rows = places.selectExpr("label", "pmod(hash(label), 7) AS place").collect()
    assert sorted((row.place, row.label) for row in rows) == list(enumerate(labels))


def test_signals_take_one_exchange_more_a_round(spark: Any, event_log: Path) -> None:
    """Users look at what all others gave, and give once more."""
    frame = spark.range(4000).selectExpr("id DIV 40 AS u", "id % 40 AS i")
    seen = len(events(event_log))
    options: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 20, "delta": 1e-9}
    select_partitions(frame, mechanism="mad", **options)
    assert exchanges(event_log, seen) == 1 + 2


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_evidence_has_no_exchange_of_its_own(rounds: int, spark: Any, event_log: Path) -> None:
    frame = spark.range(4000).selectExpr("id DIV 40 AS u", "if(id % 40 = 0, -id, id % 40) AS i")
    mechanism = Cumulative(rounds=rounds, first_drop=-9, last_drop=-9)
    options: dict[str, Any] = {"user": "u", "item": "i", "epsilon": 20, "delta": 1e-9}
    for engine, on_the_cluster in [(SparkEngine(driver_items=0), rounds), (SparkEngine(), 1)]:
        seen = len(events(event_log))
        released = select_partitions(frame, mechanism=mechanism, engine=engine, **options).items
        assert exchanges(event_log, seen) == 1 + on_the_cluster
        assert released.count() == 39


def test_the_key_is_nowhere_to_be_seen(spark: Any, event_log: Path, capfd: Any) -> None:
    frame = spark.range(4000).selectExpr(
        "id % 100 AS u", "concat('a word of some length ', id % 40) AS i"
    )
    options: dict[str, Any] = {"user": "u", "item": "i", "rho": 0.5, "delta": 0.01}
    engine = SparkEngine(explain=True)
    test: dict[str, Any] = {"seed": SEED, "insecure_test": True, "mechanism": "sips"}
    select_partitions(frame, engine=engine, **test, **options)
    shown = capfd.readouterr()
    written = "".join(file.read_text() for file in event_log.iterdir())
    settings = json.dumps(sorted(spark.sparkContext.getConf().getAll()))
    pages = "".join(live_pages(spark.sparkContext))
    assert "mapinarrow" in pages.lower()
    everything = (written + shown.out + shown.err + settings + pages).lower()
    assert "mapinarrow" in (written + shown.err).lower()
    for secret in secrets(Key.for_tests(SEED)):
        assert secret.lower() not in everything


def live_pages(context: Any) -> list[str]:
    """Read what the driver's user interface shows while it runs: its pages and its REST answers."""
    rest = f"api/v1/applications/{context.applicationId}"
    kinds = ["jobs", "stages?details=true", "environment", "storage/rdd", "allexecutors"]
    places = [f"{rest}/{kind}" for kind in kinds]
    places += [f"{rest}/sql?details=true&planDescription=true&length=1000"]
    places += ["jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/"]
    found = []
    for place in places:
        with urllib.request.urlopen(f"{context.uiWebUrl}/{place}", timeout=300) as answer:  # noqa: S310
            found.append(answer.read().decode())
    return found


def secrets(key: Key) -> list[str]:
    """Return the key and all that is derived from it, in every spelling that a log could have."""
    purposes = [*Purpose, *(f"noise of round {n}" for n in range(3))]
    found = []
    for secret in (key._secret, *map(key._derive, purposes)):
        found += [secret.hex(), base64.b64encode(secret).decode().rstrip("="), str(secret)]
        for start in range(0, len(secret), 8):
            word = int.from_bytes(secret[start : start + 8], "little")
            signed = int.from_bytes(secret[start : start + 8], "little", signed=True)
            found += [str(word), str(signed), f"{word:x}"]
    return [re.sub(r"^b'|'$", "", spelling) for spelling in found]

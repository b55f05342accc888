"""When repeats are looked for: always where there are many, otherwise in a part of the rows."""

from itertools import groupby

from dp_sips.engines.memory.watching import _LOOK, Watch

BATCH = _LOOK // 4


def watched(share: float, batches: int, rows: int = BATCH) -> list[bool]:
    """Return which batches are watched, where this share of all rows repeats one."""
    watch, found = Watch(), []
    for _ in range(batches):
        found.append(watch.is_on(rows))
        if found[-1]:
            watch.note(rows, round(share * rows))
    return found


def test_all_rows_are_watched_where_many_are_repeats() -> None:
    assert all(watched(0.1, 200))


def test_few_rows_are_watched_where_few_are_repeats() -> None:
    found = watched(0.01, 1000)
    assert all(found[:4])
    assert not any(found[4:8])  # as many as there were before
    assert all(found[8:12])
    assert sum(found) < 100


def test_a_few_rows_decide_nothing() -> None:
    assert all(watched(0.0, 1000, rows=1))


def test_the_first_half_of_a_look_is_not_judged() -> None:
    """Its rows can only repeat rows that were not watched."""
    for repeats, goes_on in (((0, 0, BATCH, BATCH), True), ((BATCH, BATCH, 0, 0), False)):
        watch = Watch()
        for count in repeats:
            assert watch.is_on(BATCH)
            watch.note(BATCH, count)
        assert watch.is_on(BATCH) == goes_on


def test_no_pause_is_longer_than_what_came_before() -> None:
    found = watched(0.0, 1000)
    pauses = [len(list(run)) for on, run in groupby(found) if not on]
    starts = [i for i, on in enumerate(found[1:], 1) if not on and found[i - 1]]
    assert all(pause <= start for pause, start in zip(pauses, starts, strict=True))
    assert max(pauses) == 60


def test_repeats_that_were_left_out_make_no_pause_longer() -> None:
    """Where little was kept, a pause in which repeats begin again must not fill the memory."""
    watch = Watch()
    for repeats in [BATCH] * 400 + [0] * 2:
        assert watch.is_on(BATCH)
        watch.note(BATCH, repeats)
    unwatched = sum(not watch.is_on(BATCH) for _ in range(100))
    assert unwatched == 2  # as many as were kept


def test_watching_goes_on_as_soon_as_it_pays_again() -> None:
    watch = Watch()
    for _ in range(4):
        watch.is_on(BATCH)
        watch.note(BATCH, 0)
    while not watch.is_on(BATCH):
        pass
    for _ in range(100):
        watch.note(BATCH, BATCH // 2)
        assert watch.is_on(BATCH)

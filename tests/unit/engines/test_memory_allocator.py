"""Arrow's allocator while a plan runs, and after it."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from dp_sips import select_partitions
from dp_sips.engines.memory import allocator
from dp_sips.errors import InputError

OWN = pa.proxy_memory_pool(pa.mimalloc_memory_pool())
"""Has to live as long as anything that came from it."""
VISITS = {f"user {n}": ["Rome", "Lima"] for n in range(50)}


@pytest.fixture(autouse=True)
def pool() -> Iterator[None]:
    """Begin with Arrow's own allocator, and end with the one that was there."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.mimalloc_memory_pool())
    yield
    pa.set_memory_pool(before)


def name() -> str:
    found: str = pa.default_memory_pool().backend_name
    return found


def test_another_allocator_while_a_plan_runs() -> None:
    allocator.keep_memory()
    assert name() == "jemalloc"
    allocator.give_memory_back()
    assert name() == "jemalloc"
    allocator.return_to_usual()
    assert name() == "mimalloc"


def test_two_runs_at_the_same_time() -> None:
    allocator.keep_memory()
    allocator.keep_memory()
    allocator.return_to_usual()
    allocator.return_to_usual()
    assert name() == "mimalloc"


def test_what_the_caller_chose_stays() -> None:
    pa.set_memory_pool(pa.system_memory_pool())
    allocator.keep_memory()
    assert name() == "system"
    allocator.return_to_usual()
    assert name() == "system"


def test_a_pool_of_the_callers_own_comes_back() -> None:
    pa.set_memory_pool(OWN)
    allocator.keep_memory()
    assert name() == "jemalloc"
    allocator.return_to_usual()
    before = OWN.bytes_allocated()
    held = pa.allocate_buffer(1 << 20)
    assert OWN.bytes_allocated() - before >= held.size


def test_what_the_caller_chose_during_a_run_stays() -> None:
    allocator.keep_memory()
    pa.set_memory_pool(pa.system_memory_pool())
    allocator.return_to_usual()
    assert name() == "system"


def test_arrow_without_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise NotImplementedError

    monkeypatch.setattr(pa, "jemalloc_memory_pool", missing)
    allocator.keep_memory()
    assert name() == "mimalloc"
    allocator.return_to_usual()
    assert name() == "mimalloc"


def test_a_run_returns_to_usual_whatever_its_end() -> None:
    select_partitions(VISITS, epsilon=1, delta=1e-6)
    assert name() == "mimalloc"
    with pytest.raises(InputError):
        select_partitions({"a": [None]}, epsilon=1, delta=1e-6)
    assert name() == "mimalloc"

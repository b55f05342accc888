"""A test draws the same keys and the same noise whenever it runs, unless it is marked `fresh`.

A real run takes 32 bytes from the operating system, and the noise of its counts from OpenDP. Here,
both follow from the name of the test, and from how much it has drawn so far; those of a fixture
that several tests share, from the fixture's own name. Everything else is as in a real run:
`Key.is_test` is False, and OpenDP's sampler runs, although its noise is replaced.

Processes that a test starts draw for real, and so does a test marked `fresh`. Either what they
assert fails with a probability below 1e-6, or they are about freshness.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest

from dp_sips.mechanisms import discrete
from dp_sips.privacy import noise


class Draws:
    """What takes the place of `secrets`, and of OpenDP's noise."""

    def __init__(self) -> None:
        self._name = "nowhere"
        self._numbers = count()
        self._fresh = False

    @contextmanager
    def of(self, name: str, *, fresh: bool = False) -> Iterator[None]:
        """Draw what belongs to this name, from its beginning."""
        before = self._name, self._numbers, self._fresh
        self._name, self._numbers, self._fresh = name, count(), fresh
        try:
            yield
        finally:
            self._name, self._numbers, self._fresh = before

    def token_bytes(self, size: int) -> bytes:
        """Stand in for secrets.token_bytes."""
        if self._fresh:
            return secrets.token_bytes(size)
        return hashlib.shake_256(f"{self._name} {next(self._numbers)}".encode()).digest(size)

    def sampler(self, real: Callable[[list[int]], list[int]], sigma: float) -> Callable[..., Any]:
        """Stand in for OpenDP's measurement: a rounded Gaussian instead of a discrete one."""
        if self._fresh:
            return real

        def release(counts: list[int]) -> list[int]:
            real(counts)
            generator = np.random.default_rng(list(self.token_bytes(16)))
            noisy = counts + np.rint(generator.normal(0, sigma, len(counts)))
            return [int(n) for n in noisy]

        return release


DRAWS = Draws()


def pytest_configure(config: pytest.Config) -> None:
    """Replace what is random in the product."""
    config.addinivalue_line("markers", "fresh: draws for real; see tests/repeatable.py")
    patch = pytest.MonkeyPatch()
    patch.setattr(noise, "secrets", DRAWS)
    measurement = discrete.measurement
    patch.setattr(discrete, "measurement", lambda s: DRAWS.sampler(measurement(s), s))
    config.add_cleanup(patch.undo)


def _of(node: Any, more: str = "") -> Any:
    """Draw what belongs to a module, a class or a test."""
    return DRAWS.of(node.nodeid + more, fresh=node.get_closest_marker("fresh") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """A module that draws while it is imported draws for itself."""
    with _of(collector):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """A test draws for itself, and so do the fixtures that are its own."""
    with _of(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """A fixture of several tests does not draw for the first of them."""
    if fixturedef.scope == "function":
        return (yield)
    with _of(request.node, f"::{fixturedef.argname}[{request.param_index}]"):
        return (yield)

"""The memory engine's threads, and a check that none of them stays."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


def ours() -> set[threading.Thread]:
    """Return the threads that the package has started."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("dp-sips")}


@contextmanager
def none_is_left() -> Iterator[None]:
    """Threads that are started within end with it; they may take a moment to notice."""
    before = ours()
    yield
    for thread in ours() - before:
        thread.join(60)
        assert not thread.is_alive()

"""The explore page, served by a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dp_sips.pages.server import ExploreServer


@contextmanager
def explore_server() -> Iterator[ExploreServer]:
    """Serve the page until the block ends."""
    with ExploreServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()

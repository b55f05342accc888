"""dp-sips explore: it says where it is, and ends quietly."""

import http.client
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_stopped(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "dp_sips", "explore", "--no-browser"]
    # A test that runs in the background of a shell has children that ignore Ctrl-C.
    usual = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **options, **usual, env=dict(os.environ)) as process:
        assert process.stderr
        line = process.stderr.readline()
        found = re.fullmatch(
            r"Explore plans at http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)\.\n", line
        )
        assert found, line
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/")
        assert b"How many people" in connection.getresponse().read()
        connection.close()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_port_that_cannot_be_used(run: Any) -> None:
    assert run("explore", "--no-browser", "--port", "70000").refused("port 70000", "--port")


def test_it_opens_a_browser(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    from dp_sips.cli import explore

    opened, shown = [], Event()

    class Browser:
        def open(self, address: str) -> None:
            opened.append(address)
            shown.set()

    def serve(self: Any) -> None:
        del self
        shown.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(explore.webbrowser, "get", Browser)
    monkeypatch.setattr(explore.ExploreServer, "serve_forever", serve)
    ran = run("explore")
    assert ran.code == 0
    assert opened[0] in ran.err

"""dp-sips explore: it says where it is, and ends quietly."""

import http.client
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

# Where the tests run in the background of a shell, Ctrl-C would be ignored.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dp_sips_command import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_stopped(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, "explore", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
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

    opened, shown = [], Event()

    class Browser:
        def open(self, address: str) -> None:
            opened.append(address)
            shown.set()

    def serve(self: Any) -> None:
        del self
        shown.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.get", Browser)
    monkeypatch.setattr("dp_sips.pages.server.ExploreServer.serve_forever", serve)
    ran = run("explore")
    assert ran.code == 0
    assert opened[0] in ran.err

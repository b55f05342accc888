"""Serves the explore page on this machine alone, by the standard library.

Only requests that name this machine as their host are answered: a page from elsewhere whose name
was made to lead here gets nothing, although there is nothing to be had but plans.
"""

import json
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from dp_sips.errors import DpSipsError, UsageError
from dp_sips.pages.explore import Settings, curves, explore_page, numbers

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = (LOOPBACK, "localhost")
_ANSWERS: Final[dict[str, Callable[[Settings], str]]] = {"/numbers": numbers, "/curves": curves}
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ExploreServer(ThreadingHTTPServer):
    """Listens on loopback; threads end with the process."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"port {port} cannot be used ({getattr(error, 'strerror', None) or error}): name "
                "another with --port, or leave it out"
            ) from error

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the browser has gone away, or asked for something else meanwhile."""


class _Handler(BaseHTTPRequestHandler):
    server: ExploreServer
    server_version = "dp-sips"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page, or with a part of it."""
        asked = urlsplit(self.path)
        if self.headers.get("Host") not in [f"{name}:{self.server.server_port}" for name in _NAMES]:
            self._send(HTTPStatus.FORBIDDEN, "text/plain", "this is another host")
        elif asked.path == "/":
            self._send(HTTPStatus.OK, "text/html", explore_page())
        elif asked.path in _ANSWERS:
            self._answer(_ANSWERS[asked.path], asked.query)
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", "there is no such page")

    def _answer(self, answer: Callable[[Settings], str], query: str) -> None:
        try:
            text = answer(Settings.of(dict(parse_qsl(query, keep_blank_values=True))))
        except DpSipsError as error:
            text = _error(" ".join(str(error).split()))
        except (ArithmeticError, MemoryError):
            text = _error("these settings are beyond what can be computed here: change them")
        self._send(HTTPStatus.OK, "application/json", text)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the terminal is the person's."""


def _error(words: str) -> str:
    return json.dumps({"error": words}, ensure_ascii=False)

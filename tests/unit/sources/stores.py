"""Small servers for tests: files over HTTP, and as much of S3 as reading needs."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

DATE = "2026-01-01T00:00:00.000Z"


@contextmanager
def serving(
    files: Mapping[str, bytes], *, bucket: str | None = None, parts: bool = True
) -> Iterator[str]:
    """Serve files by their paths; as keys of a bucket, if there is one. Yield host and port.

    Without `parts`, a file is sent as a whole, whatever was asked for.
    """

    class Handler(_Files):
        held: ClassVar = dict(files)
        prefix: ClassVar = "" if bucket is None else f"{bucket}/"
        sends_parts: ClassVar = parts

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Files(BaseHTTPRequestHandler):
    held: ClassVar[Mapping[str, bytes]]
    prefix: ClassVar[str]
    sends_parts: ClassVar[bool]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        options = parse_qs(urlsplit(self.path).query)
        if "list-type" in options:
            self._list(options)
        else:
            self._answer(with_body=True)

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""

    def _answer(self, *, with_body: bool) -> None:
        name = unquote(urlsplit(self.path).path).removeprefix("/").removeprefix(self.prefix)
        content = self.held.get(name)
        if content is None or "forbidden" in name:
            self._send(404 if content is None else 403, b"")
            return
        wanted = self.headers.get("Range") if self.sends_parts else None
        if wanted is None:
            self._send(200, content, with_body=with_body)
            return
        first, last = wanted.removeprefix("bytes=").split("-")
        start, end = int(first), min(int(last or len(content)) + 1, len(content))
        place = f"bytes {start}-{end - 1}/{len(content)}"
        self._send(206, content[start:end], with_body=with_body, place=place)

    def _list(self, options: Mapping[str, list[str]]) -> None:
        prefix = options.get("prefix", [""])[0]
        delimiter = options.get("delimiter", [""])[0]
        found = [key for key in self.held if key.startswith(prefix)]
        deeper = {
            key[: key.index(delimiter, len(prefix)) + 1]
            for key in found
            if delimiter and delimiter in key[len(prefix) :]
        }
        keys = [key for key in found if not any(key.startswith(folder) for folder in deeper)]
        objects = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.held[key])}</Size>"
            f"<LastModified>{DATE}</LastModified></Contents>"
            for key in keys
        )
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in sorted(deeper)
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{self.prefix}</Name><IsTruncated>false</IsTruncated>"
            f"<KeyCount>{len(keys)}</KeyCount>{objects}{folders}</ListBucketResult>"
        )
        self._send(200, body.encode())

    def _send(
        self, status: int, body: bytes, *, with_body: bool = True, place: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.sends_parts:
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if place:
            self.send_header("Content-Range", place)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

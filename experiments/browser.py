"""Drives headless Chromium through its debugging pipe: keys, pictures, and what it asked for.

    with Browser() as browser:
        page = browser.open("http://127.0.0.1:8000/")
        page.set_value("#epsilon", "2")
        assert not page.problems() and page.asked() == [...]

The pipe needs no driver and no library: messages are JSON, ended by a zero byte (the DevTools
protocol). None of the browser's requests leaves the machine: its proxy is a port where nobody
listens, and only loopback goes around it.
"""

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from check_page import QUIET, PageError, chromium

_SECONDS = 300.0
_READ, _WRITE = 3, 4
"""The file descriptors of the pipe, in the browser."""


class Browser:
    """A browser of its own, with a profile of its own, which ends with the block."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        shell = f'exec "$@" {_READ}<&{to_browser} {_WRITE}>&{from_browser}'
        flags = [
            "--remote-debugging-pipe",
            "--proxy-server=127.0.0.1:9",
            f"--user-data-dir={self._folder.name}/profile",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", chromium(), *QUIET, *flags, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._left = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._out)  # the browser ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        self._folder.cleanup()

    def open(self, address: str, **view: Any) -> "Page":
        """Open a page in a tab of its own, and wait until it has loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            page.send(f"{domain}.enable")
        page.view(**view)
        page.send("Page.navigate", url=address)
        page.wait("document.readyState === 'complete' && location.href !== 'about:blank'")
        return page

    def send(self, method: str, session: str | None = None, **values: Any) -> dict[str, Any]:
        """Send a command, and return its result; events that come before it are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": values}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _SECONDS
        while (answer := self._receive(end)).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(self._in, 1 << 20) if ready else b""
            if not piece:
                raise PageError("Chromium says nothing, or has ended")
            self._left += piece
        message, _, self._left = self._left.partition(b"\0")
        received: dict[str, Any] = json.loads(message)
        return received


class Page:
    """A tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def send(self, method: str, **values: Any) -> dict[str, Any]:
        """Send a command to the tab."""
        return self._browser.send(method, self._session, **values)

    def view(
        self, width: int = 1100, height: int = 900, media: str = "", scheme: str = "light"
    ) -> None:
        """Set the size of the window, the medium, and the colour scheme."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", media=media, features=[feature])

    def run(self, script: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise PageError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + _SECONDS
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise PageError(f"it never came true that {condition}")
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """Return the words of an element, as they are shown."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def set_value(self, selector: str, value: str) -> None:
        """Change a control as a person does, who types or moves it."""
        self.run(
            f"(() => {{ const it = document.querySelector({json.dumps(selector)});"
            f"it.value = {json.dumps(value)};"
            "it.dispatchEvent(new Event('input', {bubbles: true}));"
            "it.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def press(self, key: str) -> None:
        """Press a key, as Tab or ArrowRight, on whatever has the focus."""
        codes = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "End": 35, "Home": 36}
        for kind in ("rawKeyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=codes[key],
            )  # fmt: skip

    def accessible(self) -> list[tuple[str, str]]:
        """Return role and name of everything that a screen reader can reach."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (str(node["role"]["value"]), str(node.get("name", {}).get("value", "")))
            for node in nodes
            if not node.get("ignored")
        ]

    def problems(self) -> list[str]:
        """Return what the console says, and scripts that failed."""
        self.run("1")  # what came before has arrived
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self._events() if e["method"] in kinds]

    def asked(self) -> list[str]:
        """Return the addresses that the page asked for."""
        self.run("1")
        sent = [e for e in self._events() if e["method"] == "Network.requestWillBeSent"]
        return [str(event["params"]["request"]["url"]) for event in sent]

    def picture(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def print(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.send("Page.printToPDF")["data"])

    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

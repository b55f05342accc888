"""Opens a page in headless Chromium: it renders, says nothing on the console, and loads nothing.

    python experiments/check_page.py docs/paper/index.html [--screenshot page.png]

Whatever the page asks for stands in the browser's own log of requests, and none is let out. Where
Chromium is missing, Debian's package is installed if this is root's Debian; otherwise this fails.
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-features=OptimizationHints,MediaRouter,Translate",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
_SECONDS = 300


class PageError(Exception):
    """The page does not do what it must; the message says what it does."""


def main() -> None:
    """Check the page, and say so."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--screenshot", type=Path, help="keep a picture of the page")
    options = parser.parse_args()
    try:
        seen = check(options.page, options.screenshot)
    except PageError as error:
        sys.exit(f"{options.page}: {error}")
    print(f"{options.page}: {seen} figures render, a silent console, no network")


def check(page: Path, screenshot: Path | None = None) -> int:
    """Return how many figures the page shows, or raise a PageError."""
    with tempfile.TemporaryDirectory() as folder:
        picture = (screenshot or Path(folder) / "page.png").absolute()
        picture.unlink(missing_ok=True)
        dom = _browse(page, folder, "--dump-dom")
        if asked := _asked(Path(folder) / "requests.json"):
            raise PageError(f"it asks the network for {', '.join(asked)}")
        _browse(page, folder, f"--screenshot={picture}", "--window-size=1100,1400")
        if not picture.exists():
            raise PageError("it does not render: there is no screenshot")
    return _figures(dom)


def _figures(dom: str) -> int:
    """Count figures, in the page as the browser understood it."""
    if "</h1>" not in dom:
        raise PageError("it has no title")
    figures = re.findall(r"<figure>.*?</figure>", dom, flags=re.DOTALL)
    empty = [text for text in figures if "<path" not in text]
    if empty or not figures:
        raise PageError(f"{len(empty)} of its {len(figures)} figures are empty")
    return len(figures)


def _asked(log: Path) -> list[str]:
    """Return what the page asked for; the browser's own requests come from no origin."""
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    asked = [event.get("params", {}) for event in events]
    urls = [p["url"] for p in asked if p.get("initiator", "not an origin") != "not an origin"]
    return [url for url in dict.fromkeys(urls) if not url.startswith(("file:", "data:"))]


def _browse(page: Path, folder: str, *what: str) -> str:
    """Run the browser on the page, and return its output; a word on the console is an error."""
    network = (
        "--proxy-server=127.0.0.1:9",  # nobody listens there
        f"--log-net-log={folder}/requests.json",
        f"--user-data-dir={folder}/profile",
    )
    command = [chromium(), *QUIET, *network, *what, page.absolute().as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    said = [line for line in ran.stderr.splitlines() if ":CONSOLE" in line]
    if said:
        raise PageError("its console says: " + "\n".join(said))
    if ran.returncode != 0:
        raise PageError(f"Chromium failed: {ran.stderr[-2000:]}")
    return ran.stdout


def chromium() -> str:
    """Return the browser's path; installed now, if it is missing and this may install it."""
    if not _which() and shutil.which("apt-get") and os.geteuid() == 0:
        _install()
    if not (found := _which()):
        raise PageError("Chromium is missing: install it (Debian: apt-get install chromium)")
    return found


def _install() -> None:
    """Install Debian's Chromium; tests that run side by side wait for the first to do it."""
    with (Path(tempfile.gettempdir()) / "dp-sips-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _which():
            return
        # Debian's tools look for theirs there.
        path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": path}
        for step in (("update",), ("install", "--yes", "--no-install-recommends", "chromium")):
            subprocess.run(["apt-get", "--quiet", *step], check=False, env=quiet)


def _which() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


if __name__ == "__main__":
    main()

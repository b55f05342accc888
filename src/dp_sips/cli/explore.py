"""dp-sips explore: a page on this machine that shows what settings mean, without any data."""

import argparse
import webbrowser
from threading import Thread

from dp_sips.cli.parser import Parser
from dp_sips.cli.streams import say
from dp_sips.pages.server import ExploreServer

_EXAMPLES = """\
The page is served on 127.0.0.1 alone, asks nothing of the network, and knows of no data. Ctrl-C
ends it.

examples:
  dp-sips explore
  dp-sips explore --port 8000 --no-browser"""


def configure(parser: Parser) -> None:
    """Add the flags of this command."""
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="where to listen (default: a free port)"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="say where the page is, and open nothing"
    )


def run(args: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    with ExploreServer(args.port) as server:
        say(f"Explore plans at {server.address} (Ctrl-C ends it).")
        if not args.no_browser:
            Thread(target=_show, args=(server.address,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def _show(address: str) -> None:
    """Open the page, unless the only browser there is would take over this terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(address)

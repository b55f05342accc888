"""The site builds without warnings, and nothing on it asks the network for anything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", out]
    built = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=600
    )
    assert built.returncode == 0, built.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}
    assert (site / "paper" / "index.html").stat().st_size > 100_000


def test_the_public_names_are_documented(site: Path) -> None:
    import dp_sips

    page = (site / "api.html").read_text("utf-8")
    names = set(dp_sips.__all__) - {"text"}
    assert names <= set(re.findall(r'id="dp_sips\.(?:[a-z_]+\.)*([A-Za-z0-9_]+)"', page))


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|img|link)[^>]*(?:src|href)="([^"]+)"', page.read_text("utf-8")
        )
        assert not [address for address in loaded if address.startswith(("http", "//"))], page

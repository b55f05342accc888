# ruff: noqa: INP001 (Sphinx finds it by its name)
"""Sphinx: the pages of this folder as a site. `make docs` builds it, without warnings."""

import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from notebook_pages import NotebookParser

project = "dp-sips"
author = "the dp-sips authors"
project_copyright = author
release = version = installed("dp-sips")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["_build", "paper"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_use_ivar = True

html_theme = "furo"
html_title = "dp-sips"
html_static_path = ["_static"]
html_css_files = ["site.css"]

ELSEWHERE = {
    "../src/dp_sips/privacy/README.md": "argument.md",
    "../src/dp_sips/mechanisms)": "mechanisms.md)",
}
"""Links of our pages that lead to other places on the site than in the repository."""


def _at_home(app: Sphinx, document: str, source: list[str]) -> None:
    if document == "paper-evaluation":
        source[0] += _paper(Path(app.srcdir, "paper", "index.html"))
    for there, here in ELSEWHERE.items():
        source[0] = source[0].replace(f"]({there}", f"]({here}")


def _paper(page: Path) -> str:
    """Return what the reproduction of the paper's evaluation shows, for a page of the site."""
    body = page.read_text("utf-8").partition("</h1>")[2].partition("</body>")[0]
    return f'\n```{{raw}} html\n<div class="paper">\n{body}\n</div>\n```\n'


def _copy_paper(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        target = Path(app.outdir, "paper")
        target.mkdir(exist_ok=True)
        shutil.copy(Path(app.srcdir, "paper", "index.html"), target)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _at_home)
    app.connect("build-finished", _copy_paper)

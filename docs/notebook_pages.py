# ruff: noqa: INP001 (conf.py imports it from this folder)
"""Notebooks as pages of the site, with the outputs that are stored in them."""

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser


class NotebookParser(MystParser):
    """Reads .ipynb as the Markdown that it is, with code and outputs in between."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Turn cells into Markdown, and parse that."""
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(map(_markdown, cells)) + "\n", document)


def _markdown(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join((_fenced(source, "python"), *map(_output, cell["outputs"])))


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]).rstrip(), "text")
    data = output["data"]
    if "image/png" in data:
        return _html(f'<img alt="figure" src="data:image/png;base64,{data["image/png"]}">')
    if "text/html" in data:
        return _html("".join(data["text/html"]))
    return _fenced("".join(data["text/plain"]), "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"


def _html(text: str) -> str:
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    return f'```{{raw}} html\n<div class="output">\n{lines}\n</div>\n```'

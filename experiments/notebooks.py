"""Run notebooks, and keep what their cells show: a light runner, without a kernel.

    python experiments/notebooks.py docs/notebooks/*.ipynb [--check]

Cells run in order in one namespace. What a cell prints, the value of its last line and Matplotlib's
figures become its outputs. With --check nothing is written; text that differs is an error, except
in cells with the tag "noisy", whose numbers have noise, and figures are only drawn.
"""

import argparse
import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

NOISY: Final = "noisy"


def run_notebook(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the notebook with the outputs of a fresh run."""
    mpl.use("Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, number = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number += 1
            outputs = _run_cell("".join(cell["source"]), f"{name}, cell {number}", names, number)
            cells.append({**cell, "execution_count": number, "outputs": outputs})
        else:
            cells.append(cell)
    return {**notebook, "cells": cells}


def texts(notebook: dict[str, Any]) -> list[Any]:
    """Return what the cells show as text, except those with noise."""
    return [
        [_text(output) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and NOISY not in cell["metadata"].get("tags", ())
    ]


def _text(output: dict[str, Any]) -> Any:
    if output["output_type"] == "stream":
        return output["text"]
    return None if "image/png" in output["data"] else output["data"]


def _run_cell(
    source: str, name: str, names: dict[str, Any], number: int
) -> list[dict[str, Any]]:  # fmt: skip
    tree = ast.parse(source, name)
    *_, last = (None, *tree.body)
    if isinstance(last, ast.Expr):
        tree.body.pop()
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)  # noqa: S102 (our own pages)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    figures = _figures()
    if value is not None and not figures:
        outputs.append(_result(value, number))
    return outputs + figures


def _lines(printed: io.StringIO) -> list[str]:
    return printed.getvalue().splitlines(keepends=True)


def _result(value: Any, number: int) -> dict[str, Any]:
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(keepends=True)
    return {
        "output_type": "execute_result",
        "execution_count": number,
        "data": data,
        "metadata": {},
    }


def _figures() -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    outputs = []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=110, metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    plt.close("all")
    return outputs


def main() -> int:
    """Run the notebooks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    code = 0
    for path in options.notebooks:
        old = json.loads(path.read_text("utf-8"))
        new = run_notebook(old, path.name)
        if not options.check:
            path.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", "utf-8")
        elif texts(old) != texts(new):
            print(f"{path} shows something else now: run python experiments/notebooks.py {path}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())

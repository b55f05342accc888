"""Break the product from outside: one function at a time, by a change in its source.

The code object of the function is replaced, so that every module that imported the function, and
every partial that holds it, runs the broken code. Nothing in the product knows about this.
"""

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class Patch:
    """A change in the source of one function.

    Attributes:
        where: The function, as "module:name" or "module:Class.method" within `dp_sips`.
        old: What its source has, exactly once.
        new: What takes its place.
    """

    where: str
    old: str
    new: str


@contextmanager
def broken(*patches: Patch) -> Iterator[None]:
    """Run the product with these changes; what it has cached is forgotten before and after."""
    with ExitStack() as stack:
        stack.callback(_forget)
        for patch in patches:
            stack.enter_context(_patched(patch))
        _forget()
        yield


def function_at(where: str) -> FunctionType:
    """Return the plain function that a property, a cache or a decorator may hide."""
    module, _, path = where.partition(":")
    found: Any = import_module(f"dp_sips.{module}")
    for name in path.split("."):
        found = inspect.getattr_static(found, name)
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        found = _inner(found)
    return found


def _inner(wrapper: Any) -> Any:
    if isinstance(wrapper, property):
        return wrapper.fget
    if isinstance(wrapper, functools.cached_property):
        return wrapper.func
    return wrapper.__func__ if hasattr(wrapper, "__func__") else wrapper.__wrapped__


@contextmanager
def _patched(patch: Patch) -> Iterator[None]:
    function = function_at(patch.where)
    before = function.__code__, function.__defaults__
    function.__code__, function.__defaults__ = _compiled(function, patch)
    try:
        yield
    finally:
        function.__code__, function.__defaults__ = before


def _compiled(function: FunctionType, patch: Patch) -> tuple[CodeType, tuple[Any, ...] | None]:
    """Return the code of the function with the change, and its defaults."""
    source = textwrap.dedent(inspect.getsource(function))
    found = source.count(patch.old)
    assert found == 1, f"{patch.where} has {patch.old!r} {found} times: mend the list of slips"
    tree = ast.parse(source.replace(patch.old, patch.new))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    names: dict[str, Any] = {}
    exec(compile(tree, f"<{patch.where}, broken>", "exec"), function.__globals__, names)  # noqa: S102
    made = names[definition.name]
    assert made.__code__.co_freevars == function.__code__.co_freevars, f"{patch.where}: a closure"
    return made.__code__, made.__defaults__


def _forget() -> None:
    """Clear every cache of the product."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "dp_sips":
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()

"""Engines: the same plan in plain Python, or on all cores of this machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dp_sips.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from dp_sips.engines.base import Engine

# An engine is imported when it is used, and not before.
_ENGINES: Final = {
    "auto": ("dp_sips.engines.memory", "MemoryEngine"),
    "memory": ("dp_sips.engines.memory", "MemoryEngine"),
    "reference": ("dp_sips.engines.reference", "ReferenceEngine"),
}


def find_engine(engine: "str | Engine") -> "Engine":
    """Return the engine with this name and its defaults, or the engine itself."""
    if isinstance(engine, str):
        if engine not in _ENGINES:
            raise UsageError(f"unknown engine {engine!r}: {did_you_mean(engine, _ENGINES)}")
        module, name = _ENGINES[engine]
        found: Any = getattr(import_module(module), name)()
        return found  # type: ignore[no-any-return]
    if not callable(getattr(engine, "load", None)):
        raise UsageError(f"engine must be a name or an engine, got {engine!r}")
    return engine

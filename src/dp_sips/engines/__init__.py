"""Engines: the same plan in plain Python, on all cores of this machine, or on a Spark cluster."""

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
    "spark": ("dp_sips.engines.spark", "SparkEngine"),
}

MEMORY_OPTIONS: Final = ("memory_limit", "spill_folder")


def find_engine(engine: "str | Engine", data: Any = None, **options: Any) -> "Engine":
    """Return the engine with this name and these options, or the engine itself.

    "auto" is the engine where the data is: Spark for a Spark table, else this machine. Options that
    are None are not given.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(engine, str):
        if engine == "auto" and type(data).__module__.startswith("pyspark."):
            engine = "spark"
        _refuse_memory(engine, options, fix="leave it out")
        if engine not in _ENGINES:
            raise UsageError(f"unknown engine {engine!r}: {did_you_mean(engine, _ENGINES)}")
        module, name = _ENGINES[engine]
        try:
            found: Any = getattr(import_module(module), name)(**options)
        except ModuleNotFoundError as error:
            missing = str(error.name).split(".")[0]
            fix = f"pip install 'dp-sips[{engine}]'"
            raise UsageError(f"the engine {engine!r} needs {missing}: {fix}") from error
        return found  # type: ignore[no-any-return]
    from dp_sips.engines.base import Engine

    if isinstance(engine, type) or not isinstance(engine, Engine):
        raise UsageError(f"engine must be a name or an engine, got {engine!r}")
    _refuse_memory(engine, options, fix="give it to the engine, or leave it out")
    return engine


def _refuse_memory(engine: "str | Engine", options: dict[str, Any], fix: str) -> None:
    """Reject what only the memory engine can do something with, if it is made here."""
    given = [name for name in MEMORY_OPTIONS if name in options]
    if given and engine not in ("auto", "memory"):
        raise UsageError(f"{given[0]} is for engine='memory', and this is {engine!r}: {fix}")

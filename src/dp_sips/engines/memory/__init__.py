"""The memory engine: columnar, compiled, on all cores of one machine."""

from dp_sips.engines.memory.engine import MemoryEngine

__all__ = ["MemoryEngine"]

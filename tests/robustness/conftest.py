"""Tests of scripts find them as those of experiments do."""

from tests.experiments.conftest import _scripts

__all__ = ["_scripts"]

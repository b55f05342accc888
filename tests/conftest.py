"""Tests are repeatable, and machines that run them are slow at times.

No example has a deadline. Hypothesis tries the same examples each time; to look for others:
pytest --hypothesis-profile=search.
"""

from hypothesis import settings

pytest_plugins = ["tests.processes", "tests.repeatable"]

settings.register_profile("search", deadline=None)
settings.register_profile("dp-sips", deadline=None, derandomize=True)
settings.load_profile("dp-sips")

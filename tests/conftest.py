"""Machines that run tests are slow at times: no example has a deadline."""

from hypothesis import settings

settings.register_profile("dp-sips", deadline=None)
settings.load_profile("dp-sips")

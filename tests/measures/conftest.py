"""Hypothesis without a deadline (machines are shared) and with the same examples in every run."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

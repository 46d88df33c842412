"""Hypothesis: new examples on every run at home, the same ones on every run in CI."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "home")

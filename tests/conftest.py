"""Hypothesis: new examples on every run at home, the same ones on every run in CI.

And a PostgreSQL server, started for the first test that asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgresql import PostgresqlServer, running_server

settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "home")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Run a server for the session; its tests make databases of their own."""
    with running_server() as server:
        yield server

"""Commands that only answer, asked of a service in place of a store."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

import pytest

from tests.http.running import Served, run
from tests.ports import free_port


@pytest.mark.parametrize(
    "words", ["data regions", "data links --src us-east", "data export graph --format csv"]
)
def test_a_service_gives_commands_the_answers_of_its_store(
    service: Served, measured: Path, words: str
) -> None:
    asked, local = (run(*words.split(), db=db) for db in (service.url, measured))
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == local.stdout


def test_what_needs_the_store_itself_or_a_token_says_so(
    guarded: Served, environment: MutableMapping[str, str]
) -> None:
    refused = run("data", "regions", db=guarded.url)
    assert refused.returncode == 2
    assert "`relayd serve token create`" in refused.stderr
    environment["RELAYD_TOKEN"] = guarded.tokens["read"]
    assert run("data", "regions", db=guarded.url).returncode == 0
    for words in ("study report", "data store compact --older-than 90d", "serve token list"):
        failed = run(*words.split(), db=guarded.url)
        assert failed.returncode == 2
        assert "is the address of a service" in failed.stderr
    mine = run("data", "regions", "--catalogue", "mine.toml", db=guarded.url)
    assert "Give it to `relayd serve`" in mine.stderr


def test_a_service_that_is_away_is_told_in_one_line() -> None:
    away = f"http://127.0.0.1:{free_port()}"
    gone = run("data", "regions", db=away)
    assert gone.returncode == 2
    assert gone.stderr.startswith(f"relayd: {away} can't be reached")
    assert gone.stderr.count("\n") == 1

"""A few of the kills and hangs of ``make chaos``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.chaos.builds import kill_builds
from benchmarks.chaos.kills import kill_databases, kill_imports, kill_services
from benchmarks.chaos.takeovers import take_over
from tests.postgresql import running_server


@pytest.mark.thorough
def test_what_was_acknowledged_outlives_kills_of_service_importer_and_database(
    tmp_path: Path,
) -> None:
    service, files = tmp_path / "service", tmp_path / "files"
    service.mkdir()
    files.mkdir()
    seen = [
        kill_services(str(service / "relayd.db"), service, 1),
        kill_imports(str(files / "relayd.db"), files, 1),
    ]
    with running_server() as server:
        seen.append(kill_databases(server, tmp_path, 2))
    assert [one.wrong for one in seen] == [[]] * 3
    assert all(one.acknowledged for one in seen)


@pytest.mark.thorough
def test_kills_of_builds_rebuilds_and_exports_lose_nothing(tmp_path: Path) -> None:
    seen = [kill_builds(str(tmp_path / "relayd.db"), tmp_path, 3)]
    with running_server() as server:
        (tmp_path / "on-server").mkdir()
        seen.append(kill_builds(server.new_store(), tmp_path / "on-server", 3))
    assert [one.wrong for one in seen] == [[], []]
    assert [one.acknowledged for one in seen] == [6, 6]


@pytest.mark.thorough
@pytest.mark.service
def test_a_service_that_is_cut_off_from_the_database_is_followed_and_nothing_paid_twice() -> None:
    seen = take_over("cut-off", 1)
    assert seen.wrong == []
    assert seen.acknowledged
    assert 0 < seen.sent_usd <= seen.spent_usd

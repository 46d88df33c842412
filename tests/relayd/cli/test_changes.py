"""``relayd data store changes``: what commands change leaves who did it."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from pathlib import Path

import pytest

from tests.relayd.catalogue.documents import azure_page, azure_vm, written
from tests.relayd.conftest import Relayd


@pytest.mark.slow
def test_who_changed_what_is_kept(
    tmp_path: Path, environment: MutableMapping[str, str], relayd: Relayd
) -> None:
    environment["RELAYD_CATALOGUE_DIR"] = str(tmp_path / "overlays")
    db, copy = tmp_path / "relayd.db", tmp_path / "copy.db"
    page = written(tmp_path / "page.json", azure_page([azure_vm("D32_v5", "eastus", 9.0)]))

    def done(*words: object) -> str:
        outcome = relayd(*words, "--db", db)
        assert outcome.code == 0
        return outcome.out

    done("serve", "token", "create", "robot", "--scope", "plan")
    done("serve", "token", "revoke", "1")
    done("data", "catalogue", "import", page)
    done("data", "catalogue", "undo")
    done("data", "store", "backup", copy)
    db.unlink()
    done("data", "store", "restore", copy)
    found = json.loads(done("data", "store", "changes", "--json"))["changes"]
    assert [change["action"] for change in found] == [
        "store restore",
        "catalogue undo",
        "catalogue import",
        "token revoke",
        "token create",
    ]
    assert all("@" in change["who"] and change["address"] == "" for change in found)
    assert [found[4]["subject"], found[3]["subject"]] == ["1 robot (plan)", "1 robot"]
    assert found[1]["subject"] == found[2]["subject"] != ""
    assert "1 robot (plan)" in done("data", "store", "changes")
    assert done("data", "store", "changes", "--last", "1").count("@") == 1

"""An emitter of another distribution: once pip has installed it, commands and HTTP have it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from probes.plugins import RegistrationError, registered
from relayd.emitting.emitter import Emitter
from relayd.emitting.formats import GROUP, emitters
from tests.http.running import make_store, served
from tests.module_graph import ROOT


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which the distribution is installed."""
    target = tmp_path_factory.mktemp("installed")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*install, str(ROOT / "examples/plugin")], check=True, timeout=120)
    return {"PYTHONPATH": str(target)}


def test_an_installed_emitter_is_on_the_command_line_and_in_the_service(
    environment: dict[str, str], tmp_path: Path
) -> None:
    store = make_store(tmp_path)
    command = [sys.executable, "-m", "relayd", "plan", "us-east", "sa", "--db", str(store)]

    def run(*words: str) -> str:
        known = {**os.environ, **environment}
        asked = [*command, *words]
        return subprocess.run(asked, capture_output=True, check=True, text=True, env=known).stdout

    written = run("--emit", "mover", "--port", "7000")
    assert "# A job of Mover, from plan" in written
    assert "hops = $SRC_1" in written
    plan = json.loads(run("--json"))
    with served(store, environment=environment) as service:
        asked = {"plan": plan, "emit": "mover", "port": 7000}
        answer = service.ask("POST", "/v1/plans/scripts", asked)
        assert (answer.status, answer.json["script"]) == (200, written)
        described = service.get("/openapi.json").json["components"]["schemas"]["ScriptRequest"]
        assert described["properties"]["emit"]["enum"] == [*emitters(), "mover"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("relayd.emitting.scripts:HAPROXY", "Two entry points of .* the name 'haproxy'"),
        ("relayd.emitting.scripts:NONE", "can't be loaded"),
        ("os:listdir", "is no Emitter"),
    ],
)
def test_an_entry_point_that_does_not_fit_is_named(value: str, words: str) -> None:
    ours = EntryPoint("haproxy", "relayd.emitting.scripts:HAPROXY", GROUP)
    with pytest.raises(RegistrationError, match=words) as caught:
        registered(GROUP, Emitter, ["name"], [ours, EntryPoint("wrong", value, GROUP)])
    assert f"entry point wrong = {value}" in str(caught.value)

"""An emitter that pip installed with another distribution is on the command line and in HTTP."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from planner.model.errors import InputError
from relayd.emitting.formats import emitters, load_emitters
from tests.http.running import make_store, served

EMITTER = Path(__file__).parents[2] / "examples" / "plugin" / "relayd_carbon" / "emitter.py"
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "relayd-carbon"
version = "1"

[project.entry-points."relayd.emitters"]
mover = "relayd_carbon.emitter:MOVER"
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment in which the distribution is installed."""
    project, target = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("installed")
    (project / "relayd_carbon").mkdir()
    shutil.copy(EMITTER, project / "relayd_carbon")
    (project / "relayd_carbon" / "__init__.py").touch()
    (project / "pyproject.toml").write_text(PROJECT)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    subprocess.run([*install, str(project)], check=True, timeout=120)
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
        ("relayd.emitting.scripts:HAPROXY", "names the emitter haproxy, which there is already"),
        ("relayd.emitting.scripts:NONE", "can't be loaded"),
        ("os:getcwd", "names a str, not an Emitter"),
    ],
)
def test_an_entry_point_that_does_not_fit_is_named(value: str, words: str) -> None:
    ours = EntryPoint("haproxy", "relayd.emitting.scripts:HAPROXY", "relayd.emitters")
    with pytest.raises(InputError, match=f"entry point wrong .*{words}"):
        load_emitters([ours, EntryPoint("wrong", value, "relayd.emitters")])

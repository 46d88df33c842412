"""A client that another tool makes from the description asks every question."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relayd.http.description import document
from tests.http.running import Served

pytestmark = pytest.mark.thorough

API = json.loads(document())
POSTS = {
    methods["post"]["operationId"]: methods["post"]["requestBody"]["content"]["application/json"]
    for path, methods in API["paths"].items()
    if "post" in methods
    and "requestBody" in methods["post"]
    and "/transfers" not in path
    and "{" not in path
}
EXAMPLES = {
    name: content["example"]
    for name, content in POSTS.items()
    if "example" in content and name != "post_samples"
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the package that openapi-python-client makes; without a complaint."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "api.json").write_bytes(document())
    told = subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", "api.json", "--output-path", "generated_client"),
        ],
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    warned = [line for line in told.stdout.splitlines() if line.startswith("WARNING")]
    assert warned == ["WARNING parsing POST /v1/samples within samples."], told.stdout
    assert told.stdout.count("Unsupported content type") == 1
    assert "Unable to process" not in told.stdout
    sys.path.insert(0, str(folder))
    return "generated_client"


@pytest.fixture
def client(service: Served, generated: str) -> Iterator[Any]:
    with importlib.import_module(generated).Client(base_url=service.url) as client:
        yield client


def _called(package: str, tag: str, operation: str, client: Any, **values: Any) -> Any:
    module = importlib.import_module(f"{package}.api.{tag}.{operation}")
    return module.sync_detailed(client=client, **values)


@pytest.mark.parametrize("operation", sorted(EXAMPLES))
def test_a_generated_client_asks_every_question(
    operation: str, generated: str, client: Any
) -> None:
    models = importlib.import_module(f"{generated}.models")
    tag = next(
        methods["post"]["tags"][0]
        for methods in API["paths"].values()
        if methods.get("post", {}).get("operationId") == operation
    )
    model = POSTS[operation]["schema"]["$ref"].rpartition("/")[2]
    example = EXAMPLES[operation]
    answer = _called(
        generated, tag, operation, client, body=getattr(models, model).from_dict(example)
    )
    assert answer.status_code == 200
    assert answer.parsed.to_dict() == json.loads(answer.content)


def test_a_generated_client_plans_and_reads_problems(
    service: Served, generated: str, client: Any
) -> None:
    ends = {"src": "aws:us-east-1", "dst": "aws:sa-east-1"}
    plan = _called(generated, "plans", "get_plan", client, **ends, volume_gb=100.0).parsed
    assert plan.verdict == "direct"
    assert (
        plan.cost_usd.total
        == service.get("/v1/plans?src=aws:us-east-1&dst=aws:sa-east-1&volume_gb=100").json[
            "cost_usd"
        ]["total"]
    )
    problem = _called(generated, "plans", "get_plan", client, src="nowhere", dst="sa").parsed
    assert problem.status == 422
    assert "nowhere" in problem.detail

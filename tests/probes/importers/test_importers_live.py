"""The tools themselves, run on loopback where they are installed."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.probes.importers.reading import samples


def tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"needs {name}")
    return path


def run(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, timeout=30, check=False).stdout


@pytest.mark.parametrize(
    ("command", "name"), [(("ping", "-i", "0.2"), "iputils"), (("busybox", "ping"), "busybox")]
)
@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_ping(command: tuple[str, ...], name: str, quiet: tuple[str, ...]) -> None:
    output = run(tool(command[0]), *command[1:], *quiet, "-c", "3", "127.0.0.1")
    if b" packet loss" not in output:
        pytest.skip(f"{command[0]} may not ping here")
    found = {sample.metric: sample for sample in samples("ping", output)}
    assert found["loss_pct"].value == 0
    assert 0 < found["rtt_ms"].value < 100
    assert found["rtt_ms"].tool == f"ping {name}"

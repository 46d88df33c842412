"""The tools themselves, run on loopback where they are installed."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from tests.ports import free_port
from tests.probes.importers.reading import outcomes, samples


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


@pytest.mark.parametrize("form", [(), ("-fparse",), ("-v",), ("-v", "-fparse")])
def test_nuttcp(form: tuple[str, ...]) -> None:
    program, control, data = tool("nuttcp"), str(free_port()), str(free_port())
    ports = ("-P", control, "-p", data)
    server = (program, "-S", "--nofork", *ports)
    with subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        client = (program, "-T1", *ports, *form, "127.0.0.1")
        # Before the server listens, `-v` prints its settings and exits with 1.
        for _ in range(100):
            attempt = subprocess.run(client, capture_output=True, timeout=30, check=False)
            output = attempt.stdout
            if attempt.returncode == 0 and output and b"classic" not in output:
                break
            time.sleep(0.1)
        process.terminate()
    (sample,) = samples("nuttcp", output, connections=1)
    assert sample.metric == "per_flow_mbps"
    assert 0.5 < (sample.duration_s or 0) < 30
    assert outcomes("nuttcp", output, connections=1) == [sample]

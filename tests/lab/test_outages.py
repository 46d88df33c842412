"""Outages in a lab: down, filtered and hanging hosts and links, and their recovery."""

from __future__ import annotations

import errno
import socket
import subprocess
from collections.abc import Callable, Iterator

import pytest

from benchmarks.lab_measuring import echo_rtts_ms, sockets_in
from probes.lab.controller import Lab
from tests.lab.shapes import star

PATIENT_S = 60.0


@pytest.fixture(scope="module")
def running_lab(lab_of: Callable[..., Lab]) -> Lab:
    return lab_of(star([20, 40], cap_mbps=50, window_bytes=500_000), "outages")


@pytest.fixture
def lab(running_lab: Lab) -> Iterator[Lab]:
    yield running_lab
    running_lab.clear()


def answered(lab: Lab, source: int = 0) -> int:
    """Count the answers to five echoes to the second site."""
    return len(echo_rtts_ms(lab, [(source, 1)], 5)[source, 1])


def connect_error(lab: Lab, port: int = 22, timeout_s: float = PATIENT_S) -> int | None:
    with sockets_in(lab) as make:
        end = make(0, socket.SOCK_STREAM, 0)
        end.settimeout(timeout_s)
        try:
            end.connect(("10.77.0.2", port))
        except TimeoutError:
            return errno.ETIMEDOUT
        except OSError as error:
            return error.errno
    return None


@pytest.mark.parametrize("target", ["link", "host"])
def test_what_is_down_is_silent_or_resets(lab: Lab, target: str) -> None:
    def put(state: str) -> None:
        if target == "link":
            lab.set_link("lab:0", "lab:1", {"state": state})
        else:
            lab.set_host("lab:1", {"state": state})

    assert connect_error(lab) is None
    put("blackhole")
    assert answered(lab) == 0
    assert connect_error(lab, timeout_s=1.0) == errno.ETIMEDOUT
    put("reset")
    assert answered(lab) == 0
    assert connect_error(lab) == errno.ECONNREFUSED
    # Others go on where a link is down; a host that is down is so for all.
    assert answered(lab, source=2) == (5 if target == "link" else 0)
    put("up")
    assert answered(lab) == 5
    assert connect_error(lab) is None


def test_icmp_can_be_filtered_while_tcp_passes(lab: Lab) -> None:
    lab.set_host("lab:1", {"icmp": "filtered"})
    assert answered(lab) == 0
    assert connect_error(lab) is None


def test_an_sshd_can_hang(lab: Lab) -> None:
    def banner(timeout_s: float) -> bytes:
        port = lab.status()["sites"][1]["port"]
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as end:
            try:
                return end.recv(16)
            except TimeoutError:
                return b""

    assert banner(PATIENT_S).startswith(b"SSH-2.0")
    lab.set_host("lab:1", {"ssh": "hang"})
    assert banner(0.5) == b""
    assert answered(lab) == 5
    lab.set_host("lab:1", {"ssh": "ok"})
    assert banner(PATIENT_S).startswith(b"SSH-2.0")


def test_a_host_that_is_down_takes_its_ssh_sessions_along(lab: Lab) -> None:
    site = lab.status()["sites"][1]
    command = ["ssh", "-i", f"{lab.folder}/id_ed25519", "-p", str(site["port"])]
    command += ["-o", f"UserKnownHostsFile={lab.folder}/known_hosts", "-o", "BatchMode=yes"]
    session = subprocess.Popen(
        [*command, "root@127.0.0.1", "echo here; sleep 600"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with session:
        assert session.stdout is not None
        assert session.stdout.readline() == "here\n"
        lab.set_host("lab:1", {"state": "reset"})
        assert session.wait(timeout=PATIENT_S) == 255

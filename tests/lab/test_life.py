"""Labs come up, go down, and leave nothing, however they end."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from benchmarks.lab_measuring import echo_rtts_ms
from planner.model.errors import InputError, RelaydError
from probes.lab import linux
from probes.lab.controller import MARK, Lab, labs, labs_folder
from probes.lab.linux import start_time_of
from probes.lab.sites import processes
from tests.lab.shapes import star
from tests.waiting import eventually

SMALL = star([5, 10], cap_mbps=20, window_bytes=50_000)


@pytest.fixture
def folder(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("RELAYD_LAB_DIR", str(tmp_path / "labs"))
    yield tmp_path / "labs"
    for lab in labs():
        lab.down()


def processes_of(identity: str) -> list[int]:
    mark = f"{MARK}={identity}".encode()
    found = []
    for pid in processes():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def network_namespaces(folder: Path) -> set[str]:
    """Return those of processes that have the folder of labs in what they were started with."""
    found = set()
    for pid in processes():
        try:
            started = b"".join(
                Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")
            )
            if str(folder).encode() in started:
                found.add(str(Path(f"/proc/{pid}/ns/net").readlink()))
        except OSError:
            continue
    return found - {str(Path("/proc/self/ns/net").readlink())}


def of_lab(lab: Lab) -> tuple[dict[str, Any], set[tuple[int, int | None]]]:
    """Id of a lab, and what names each of its processes for good."""
    record = lab.record()
    assert record is not None
    pids = [*processes_of(record["id"]), *(site["pid"] for site in lab.status()["sites"])]
    return record, {(pid, start_time_of(pid)) for pid in pids}


def wait_until_gone(processes_then: set[tuple[int, int | None]], timeout_s: float = 60.0) -> None:
    eventually(
        lambda: all(start_time_of(pid) != began for pid, began in processes_then),
        timeout_s,
        otherwise=lambda: "processes of the lab are left",
        every_s=0.01,
    )


def test_up_and_down_can_be_repeated_and_leave_nothing(folder: Path) -> None:
    lab = Lab("one")
    assert lab.down() is False
    assert lab.up(SMALL) is True
    assert lab.up(SMALL) is False
    with pytest.raises(InputError, match="taken"):
        lab.up(star([7]))
    _, running = of_lab(lab)
    assert len(running) >= 3 + 2 + 1
    assert len(network_namespaces(folder)) == 3
    assert lab.down() is True
    wait_until_gone(running)
    assert not network_namespaces(folder)
    assert lab.down() is False
    assert not folder.exists()


@pytest.mark.alone
def test_two_labs_do_not_see_each_other(folder: Path) -> None:
    first, second = Lab("first"), Lab("second")
    first.up(SMALL)
    second.up(star([30]))
    assert [lab.name for lab in labs()] == ["first", "second"]
    # The quickest of several: a busy machine delays some, and none comes early.
    assert abs(min(echo_rtts_ms(second, [(0, 1)], 10)[0, 1]) - 30) < 2
    assert abs(min(echo_rtts_ms(first, [(0, 1)], 10)[0, 1]) - 5) < 2
    first.down()
    assert echo_rtts_ms(second, [(0, 1)], 3)[0, 1]
    assert [lab.name for lab in labs()] == ["second"]


def test_a_killed_keeper_takes_its_lab_along_and_down_ends_what_is_left_of_it(folder: Path) -> None:
    lab, other = Lab("killed"), Lab("other")
    lab.up(SMALL)
    other.up(SMALL)
    record, running = of_lab(lab)
    inside = subprocess.Popen(lab.command("lab:1", ["sleep", "1000"]))
    os.kill(record["pid"], signal.SIGKILL)
    wait_until_gone(running)
    assert inside.wait(timeout=60) != 0
    assert not lab.is_up()
    with pytest.raises(InputError, match="no lab that is up"):
        lab.status()
    ours = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: record["id"]})
    theirs = subprocess.Popen(["sleep", "1000"], env={**os.environ, MARK: "0" * 32})
    try:
        assert lab.down() is True
        assert ours.wait(timeout=60) == -signal.SIGKILL
        assert theirs.poll() is None  # only what is the lab's goes
        assert len(other.status()["sites"]) == 3
    finally:
        for process in (ours, theirs):
            process.kill()
            process.wait()
    assert not lab.folder.exists()


@pytest.mark.parametrize(
    ("how", "after_s"),
    [(signal.SIGINT, 0.1), *((signal.SIGKILL, after_s) for after_s in (0.0, 0.1, 0.25))],
)
def test_an_interrupted_up_can_be_taken_down(folder: Path, how: Any, after_s: float) -> None:
    code = (
        "from probes.lab.controller import Lab; from tests.lab.shapes import star; "
        "Lab('cut').up(star([5] * 12))"
    )
    command = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    while not folder.exists():
        assert command.poll() is None
    time.sleep(after_s)
    command.send_signal(how)
    command.wait()
    Lab("cut").down()
    eventually(lambda: not network_namespaces(folder))
    assert not folder.exists()


def test_a_lab_may_end_with_who_started_it(folder: Path) -> None:
    code = (
        "import sys; from probes.lab.controller import Lab; from tests.lab.shapes import star; "
        "Lab('bound').up(star([5]), ends_with_caller=True); print('up', flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"up\n"
        _, running = of_lab(Lab("bound"))
        caller.kill()
    wait_until_gone(running)


def test_ssh_reaches_every_site_under_its_own_key_and_exec_returns_a_code(folder: Path) -> None:
    lab = Lab("ssh")
    lab.up(SMALL)
    script = "hostname; id -u; ip -o -4 addr show dev wan; exit 7"
    ran = subprocess.run(lab.command("lab:2", ["sh", "-c", script]), capture_output=True, text=True)
    assert ran.returncode == 7
    name, user, *addresses = ran.stdout.splitlines()
    assert (name, user, len(addresses)) == ("lab-2", "0", 2)
    assert "10.77.0.3/32" in addresses[0]

    hosts = tomllib.loads(lab.fleet_file.read_text())["host"]
    assert [host["region"] for host in hosts] == ["lab:0", "lab:1", "lab:2"]
    assert stat.S_IMODE(Path(hosts[0]["key"]).stat().st_mode) == 0o600
    assert stat.S_IMODE(lab.folder.stat().st_mode) == 0o700
    keys = set()
    for host in hosts:
        command = ["ssh", "-i", host["key"], "-p", str(host["port"]), "-o", "BatchMode=yes"]
        command += ["-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]
        command += ["-o", f"UserKnownHostsFile={host['known_hosts']}", f"{host['user']}@127.0.0.1"]
        done = subprocess.run(
            [
                *command,
                "hostname; ls -A /tmp; ping -q -c 1 -W 20 10.77.0.1 >/dev/null && echo pong",
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == host["region"].replace(":", "-") + "\npong\n", done.stderr
        keys.add(
            next(
                k
                for k in Path(host["known_hosts"]).read_text().splitlines()
                if k.startswith(f"[127.0.0.1]:{host['port']},")
            ).split()[-1]
        )
    assert len(keys) == 3


def test_what_is_missing_is_named_with_the_line_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(linux._PACKAGES, "no-such-tool", "no-such-package")
    with pytest.raises(RelaydError, match=r"apt-get install -y (\S+ )*no-such-package"):
        linux.check_machine()


def test_a_name_that_is_a_path_is_refused() -> None:
    for name in ("../x", "a/b", "", ".x", "A"):
        with pytest.raises(InputError, match="--name"):
            Lab(name)


def test_a_lab_that_cannot_come_up_says_why_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.Popen

    def without_tun(command: Any, **options: Any) -> Any:
        # As root, in a mount namespace where /dev is empty.
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"']
        return real([*hidden, "sh", *command], **options)

    monkeypatch.setattr(subprocess, "Popen", without_tun)
    with pytest.raises(RelaydError, match="/dev/net/tun"):
        Lab("broken").up(SMALL)
    assert not folder.exists()
    assert labs_folder() == folder


def test_a_user_without_root_can_have_a_lab(machine: None, tmp_path: Path) -> None:
    """As an unprivileged user who may open /dev/net/tun, made so in a private mount namespace."""
    uid = 4242
    become = f"setpriv --reuid {uid} --regid {uid} --clear-groups"
    for python in (sys.executable, "/usr/bin/python3"):
        runs = (
            f"{become} sh -c 'exec {python} -c \"import sys; "
            f"assert sys.version_info[:2] == {sys.version_info[:2]}\"'"
        )
        if subprocess.run(runs, shell=True, capture_output=True).returncode == 0:
            break
    else:
        pytest.skip(f"user {uid} may run no Python of this version")
    base = Path(os.path.realpath("/var/tmp")) / f"relayd-rootless-{os.getpid()}"
    base.mkdir(mode=0o755)
    repository = Path(__file__).resolve().parents[2]
    packages = Path(numpy.__file__).parents[1]
    script = tmp_path / "rootless.sh"
    code = base / "code.py"
    code.write_text(
        "import os, signal, subprocess, sys, time\n"
        "from probes.lab.controller import Lab\n"
        "from probes.lab.linux import start_time_of\n"
        "from tests.lab.shapes import star\n"
        "lab = Lab('rootless')\n"
        "try:\n"
        "    lab.up(star([20], cap_mbps=20, window_bytes=50_000), ends_with_caller=True)\n"
        "    ask = ['ping', '-q', '-c', '3', '-i', '0.2', '10.77.0.2']\n"
        "    print(subprocess.run(lab.command('lab:0', ask), capture_output=True, text=True))\n"
        "    site = lab.status()['sites'][1]\n"
        "    ssh = ['ssh', '-i', f'{lab.folder}/id_ed25519', '-p', str(site['port']),\n"
        "           '-o', f'UserKnownHostsFile={lab.folder}/known_hosts', '-o', 'BatchMode=yes',\n"
        "           'tester@127.0.0.1', 'hostname; ping -q -c 2 -i 0.2 10.77.0.1']\n"
        "    print(subprocess.run(ssh, capture_output=True, text=True))\n"
        "    lab.set_host('lab:1', {'egress_mbps': 5})\n"
        "    pids = [site['pid'] for site in lab.status()['sites']]\n"
        "    sites = [(pid, start_time_of(pid)) for pid in pids]\n"
        "    os.kill(lab.record()['pid'], signal.SIGKILL)\n"
        "finally:\n"
        "    print('down', lab.down(), lab.folder.exists())\n"
        "    until_s = time.monotonic() + 30\n"
        "    while any(start_time_of(pid) == began for pid, began in sites):\n"
        "        assert time.monotonic() < until_s, 'sites are left'\n"
        "        time.sleep(0.01)\n"
    )
    script.write_text(
        "set -e\n"
        "mount -t tmpfs none /mnt && mkdir /mnt/net && mknod -m 666 /mnt/net/tun c 10 200\n"
        "mount --bind /mnt/net /dev/net\n"
        f"{{ cat /etc/passwd; echo tester:x:{uid}:{uid}::/tmp:/bin/sh; }} > /mnt/passwd\n"
        "mount --bind /mnt/passwd /etc/passwd\n"
        f"chown {uid}:{uid} {base}\n"
        f"export RELAYD_LAB_DIR={base}/labs PYTHONPATH={repository}:{packages} HOME={base}\n"
        f"exec {become} {python} {code}\n"
    )
    try:
        done = subprocess.run(
            ["unshare", "--mount", "sh", str(script)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("0% packet loss") == 2, done.stdout
        assert "lab-1" in done.stdout
        assert "down True False" in done.stdout
    finally:
        subprocess.run(["rm", "-rf", str(base)], check=False)

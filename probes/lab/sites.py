"""A site as a process: namespaces of its own, private folders, and sshd as the first process.

Everything that runs in a site is in its PID namespace, so nothing outlives its first
process; that one dies with ``unshare``, which dies with the lab's keeper. Every site has its own
host key, so that a mixed-up host is noticed as it would be elsewhere.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple

from planner.model.errors import RelaydError
from probes.lab.linux import die_with_parent, start_time_of, stat_of

SSHD = "/usr/sbin/sshd"

CONFIGURATION = """\
Port 22
AddressFamily inet
ListenAddress 0.0.0.0
HostKey /run/relayd/host_key
AuthorizedKeysFile /run/relayd/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 200
LogLevel FATAL
Subsystem sftp internal-sftp
"""


def make_keys(folder: Path, names: Sequence[str]) -> None:
    """Make an Ed25519 key pair ``<name>`` and ``<name>.pub`` in a folder for every name.

    Raises RelaydError if ``ssh-keygen`` fails.
    """

    def make(name: str) -> None:
        """Make one key pair, or raise a RelaydError if ``ssh-keygen`` fails."""
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "relayd-lab"]
        done = subprocess.run(
            [*command, "-f", str(folder / name)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RelaydError(f"The lab could not make SSH keys: {done.stderr.strip()}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make, names))


_READY = "relayd-site-ready"


class SiteProcess(NamedTuple):
    """The first process of a site; the start, in clock ticks since boot, identifies it for good."""

    pid: int  # seen from outside
    start_time: int


def site_script(
    hostname: str, host_key: str, authorized_keys: str, user_id: int, group_id: int
) -> str:
    """Shell script that makes a site of new namespaces and becomes its sshd.

    Parameters
    ----------
    hostname : str
    host_key, authorized_keys : str
        Contents of the files.
    user_id, group_id : int
        Of the user who runs the lab, outside of user namespaces.
    """
    name = "".join(c if c.isalnum() else "-" for c in hostname)[:63]
    lines = [
        "set -e",
        f"hostname {shlex.quote(name)}",
        # Its own /run, /tmp and logs, so that sites do not see each other's files.
        "mount -t tmpfs -o mode=755 lab /run",
        "mount -t tmpfs -o mode=755 lab /var/log",
        "mount -t tmpfs -o mode=1777 lab /tmp",
        "mkdir -m 755 /run/sshd /run/relayd",
        "umask 077",
        f"printf %s {shlex.quote(CONFIGURATION)} > /run/relayd/sshd_config",
        f"printf %s {shlex.quote(host_key)} > /run/relayd/host_key",
        f"printf %s {shlex.quote(authorized_keys)} > /run/relayd/authorized_keys",
        "umask 022",
        "cd /",
    ]
    start = f"{SSHD} -D -e -f /run/relayd/sshd_config </dev/null >/dev/null"
    if user_id:
        lines.append("echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start")
        # sshd as root of a user namespace would fail to drop privileges it does not have, so
        # it runs as the user that it is outside; that one owns what was written above.
        ids = f"--map-user={user_id} --map-group={group_id}"
        start = f"unshare --user {ids} {start}"
    else:
        lines.append("mount -t tmpfs -o mode=700 lab /root")
    lines += [f"echo {_READY}", f"exec {start}"]
    return "\n".join(lines) + "\n"


def start_site(script: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Begin a site; :func:`site_process` waits until it is there."""
    command = ["unshare", "--net", "--mount", "--uts", "--ipc", "--pid"]
    command += ["--fork", "--kill-child", "--mount-proc"]
    process = subprocess.Popen(
        [*command, "sh", "-s"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        cwd="/",
        preexec_fn=_detach,
    )
    assert process.stdin is not None
    process.stdin.write(script.encode())
    process.stdin.close()
    return process


def site_process(process: subprocess.Popen[bytes]) -> SiteProcess:
    """Wait until a site has set itself up and return its first process.

    Raises RelaydError if it ends instead; the reason is in the lab's log.
    """
    assert process.stdout is not None
    said = process.stdout.readline()
    process.stdout.close()
    if said.strip() != _READY.encode():
        process.kill()
        process.wait()
        raise RelaydError("A site of the lab could not be set up")
    for pid in children_of(process.pid):
        if (began := start_time_of(pid)) is not None:
            return SiteProcess(pid, began)
    raise RelaydError("A site of the lab could not be found after it was set up")


def _detach() -> None:
    os.setsid()
    die_with_parent(signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Ids of the processes that a process has started and that have not ended."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in listed.read_text().split()]
    except FileNotFoundError:  # it has ended, or the kernel has no CONFIG_PROC_CHILDREN
        return [child for child in processes() if stat_of(child)[1:2] == [b"%d" % pid]]


def processes() -> list[int]:
    """Ids of all processes that there are."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]

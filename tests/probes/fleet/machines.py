"""Real sshds on loopback that stand for the hosts of a fleet."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from probes.fleet.hosts import Fleet, Host
from tests.ports import free_port
from tests.waiting import eventually

SSHD = "/usr/sbin/sshd"

_CONFIGURATION = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
LogLevel ERROR
# A shell that sshd starts reads ~/.bashrc, and what a developer has there takes long.
SetEnv HOME={folder}{more}
"""


def need(*programs: str) -> None:
    """Skip a test where a real program is missing, and say which."""
    missing = [name for name in programs if shutil.which(name, path=_PATH) is None]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)}: install iperf3 iputils-ping traceroute"
            " openssh-server from the distribution's packages"
        )


_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def owner(name: str) -> str:
    """Return a name for a controller: it ends what others of its name have left on a machine."""
    return f"{name} {os.getpid()}"


def make_key(path: Path) -> str:
    """Make a key pair; returns the public half as ``kind base64``."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, input=b""
    )
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


@dataclass
class Machine:
    """One sshd."""

    folder: Path
    port: int
    public_key: str
    programs: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def start(self, *within: str) -> None:
        """Start it, by a command that runs another if one is given; wait until it greets."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        configuration = self.folder / "sshd_config"
        more = f" PATH={self.programs}:/usr/bin:/bin" if self.programs else ""
        configuration.write_text(
            _CONFIGURATION.format(port=self.port, folder=self.folder, more=more)
        )
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*within, SSHD, "-D", "-e", "-f", str(configuration)],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        eventually(self._greets, otherwise=(self.folder / "log").read_text, every_s=0.02)

    def _greets(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            return connection.recv(4) == b"SSH-"
        return False

    def everyone(self) -> list[int]:
        """Ids of the sshd and of the processes of its connections."""
        assert self.process
        found, left = [self.process.pid], [self.process.pid]
        while left:
            listed = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(left.pop())], capture_output=True, text=True
            ).stdout
            children = [int(word) for word in listed.split()]
            found += children
            left += children
        return found

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the sshd and all that it has begun."""
        for pid in self.everyone():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def stop(self) -> None:
        """Kill it and all that it has begun."""
        if self.process:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


@contextmanager
def machines(
    folder: Path, regions: list[str], *, programs: Path | None = None
) -> Iterator[tuple[Fleet, dict[str, Machine]]]:
    """Start one sshd a region; gives the fleet and the sshds by host name.

    Programs of a folder, if one is given, go before those of the machine.
    """
    need("sshd", "ssh-keygen", "ps")
    public = make_key(folder / "id")
    known = folder / "known_hosts"
    found: dict[str, Machine] = {}
    hosts: dict[str, Host] = {}
    lines = []
    try:
        for number, region in enumerate(regions):
            place = folder / f"host{number}"
            place.mkdir()
            (place / "authorized_keys").write_text(public + "\n")
            machine = Machine(place, free_port(), make_key(place / "host_key"), programs)
            machine.start()
            found[region] = machine
            lines.append(f"[127.0.0.1]:{machine.port} {machine.public_key}\n")
            first = free_port(16)
            hosts[region] = Host(
                region,
                region,
                "127.0.0.1",
                machine.port,
                getpass.getuser(),
                folder / "id",
                known,
                public_address=f"127.0.1.{number + 1}",
                first_port=first,
                last_port=first + 15,
            )
        known.write_text("".join(lines))
        yield Fleet(hosts), found
    finally:
        for machine in found.values():
            machine.stop()

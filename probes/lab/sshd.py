"""A real sshd in every site: its keys, its configuration, and how it is reached.

Every site has its own host key, so that a mixed-up host is noticed as it would be elsewhere.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from planner.model.errors import RelaydError

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

    Raises
    ------
    RelaydError
        If ``ssh-keygen`` fails.
    """

    def make(name: str) -> None:
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


def known_hosts_line(port: int, addresses: Sequence[str], public_key: str) -> str:
    """Line of a ``known_hosts`` file for a site.

    Parameters
    ----------
    port : int
        Where the site's sshd is reached on 127.0.0.1.
    addresses : sequence of str
        What other sites reach it by, at port 22.
    public_key : str
        Content of its host key's ``.pub`` file.
    """
    kind, key = public_key.split()[:2]
    return f"[127.0.0.1]:{port},{','.join(addresses)} {kind} {key}\n"

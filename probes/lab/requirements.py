"""What a machine must have for a lab, said before anything is started."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from planner.model.errors import RelaydError
from probes.lab.linux import CLONE_NEWNET, become_root_of_new_user_namespace, unshare

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "/usr/sbin/sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
    "iperf3": "iperf3",
    "ping": "iputils-ping",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "hostname": "hostname",
}


def missing_packages() -> list[str]:
    """Debian packages of the tools that are not there."""
    missing = {package for tool, package in _PACKAGES.items() if _where(tool) is None}
    return sorted(missing)


def check_machine() -> None:
    """Check that a lab can run here.

    Raises
    ------
    RelaydError
        Names what is missing and the line that helps.
    """
    if missing := missing_packages():
        names = " ".join(missing)
        raise RelaydError(
            f"The lab needs programs that this machine does not have. On Debian or Ubuntu they "
            f"come with: apt-get install -y {names}"
        )
    device = Path("/dev/net/tun")
    if not device.exists():
        raise RelaydError(
            "The lab needs /dev/net/tun, which this machine does not have. Make it with: "
            "modprobe tun (in a container: start it with --device /dev/net/tun)"
        )
    if os.geteuid() == 0:
        return
    if not os.access(device, os.R_OK | os.W_OK):
        raise RelaydError(
            "The lab needs root, or a user who may open /dev/net/tun. Run it with sudo, or "
            "once: sudo chmod 0666 /dev/net/tun"
        )
    if reason := _user_namespaces_refused():
        raise RelaydError(
            f"The lab needs root, or user namespaces, which this kernel refuses here ({reason}). "
            "Run it with sudo, or allow them: sudo sysctl -w user.max_user_namespaces=15000 "
            "kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0"
        )


def _where(tool: str) -> str | None:
    # Those of the system are not on every user's path.
    return shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")


def _user_namespaces_refused() -> str:
    """Try to enter a user namespace in a child; returns why it can't be done, or ``""``."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become_root_of_new_user_namespace()
            unshare(CLONE_NEWNET)
        except OSError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as said:
        return said.read().decode()

"""Needs of a lab on the machine: programs, and Linux calls that Python 3.11 does not offer.

A call raises :class:`OSError` with the kernel's reason, as the standard library would.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import shutil
import struct
from pathlib import Path

from planner.model.errors import RelaydError

CLONE_NEWUSER = 0x1000_0000
CLONE_NEWNET = 0x4000_0000

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_PR_SET_PDEATHSIG = 1
_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC

_TUNSETIFF = 0x400454CA
_TUNSETOFFLOAD = 0x400454D0
_TUNSETVNETHDRSZ = 0x400454D8
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
# CSUM | TSO4 | TSO6 | TSO_ECN | USO4 | USO6; the kernel refuses USO4 without USO6.
_OFFLOADS = (0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40, 0x01 | 0x02 | 0x04 | 0x08)

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def set_namespace(descriptor: int, kind: int) -> None:
    """Move the calling thread into the namespace that a descriptor stands for."""
    _checked(_libc.setns(descriptor, kind))


def unshare(flags: int) -> None:
    """Leave the shared namespaces named by ``flags`` for new ones."""
    _checked(_libc.unshare(flags))


def become_root_of_new_user_namespace() -> None:
    """Enter a new user namespace in which the caller is root over its own namespaces."""
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send this process a signal when the thread that started it ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0))


def open_tun(name: str) -> int:
    """Create a TUN device in the current network namespace; returns its descriptor.

    Packets carry a 10-byte virtio-net header, so segmentation offload passes through: the
    kernel hands over up to 64 kB of one TCP flow as a single packet.
    """
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        flags = _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), flags))
        fcntl.ioctl(descriptor, _TUNSETVNETHDRSZ, struct.pack("i", 10))
        with_uso, without_uso = _OFFLOADS
        try:
            fcntl.ioctl(descriptor, _TUNSETOFFLOAD, with_uso)
        except OSError:  # UDP segmentation came with Linux 6.2
            fcntl.ioctl(descriptor, _TUNSETOFFLOAD, without_uso)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def ask_for_short_slices(slice_s: float) -> None:
    """Have the scheduler give this process such slices of time (Linux 6.12 or newer).

    Raises an OSError if the kernel can't, or relayd does not know its call on this machine.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    # size, policy (SCHED_OTHER), flags, nice, priority, runtime in ns, deadline, period
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = struct.pack("IIQiIQQQ", 48, 0, 0, nice, 0, round(slice_s * 1e9), 0, 0)
    _checked(_libc.syscall(number, 0, attributes, 0))


class Timer:
    """An absolute timer on the monotonic clock, with a descriptor that ``epoll`` can watch.

    ``epoll`` itself only waits whole milliseconds, which is too coarse for delays.
    """

    def __init__(self) -> None:
        self.descriptor = _checked(_libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS))
        self._setting = _Itimerspec()
        self._value = self._setting.it_value
        self._reference = ctypes.byref(self._setting)

    def arm(self, at_s: float) -> None:
        """Expire at a time of ``time.monotonic()``; a time in the past expires at once."""
        whole = int(at_s)
        self._value.tv_sec = whole
        self._value.tv_nsec = int((at_s - whole) * 1e9)
        _libc.timerfd_settime(self.descriptor, _TFD_TIMER_ABSTIME, self._reference, None)


def stat_of(pid: int) -> list[bytes]:
    """Fields of ``/proc/PID/stat`` from the state on; empty where the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    fields = stat[stat.rindex(b")") + 2 :].split()
    return [] if fields[0] in (b"Z", b"X") else fields


def start_time_of(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; None where there is no such process.

    A process id with its start time names a process for good: ids are used again.
    """
    fields = stat_of(pid)
    return int(fields[19]) if fields else None


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


def check_machine() -> None:
    """Check that a lab can run here.

    Raises RelaydError that names the missing programs or rights, and the command that helps.
    """
    # Tools of the system are not on every user's path.
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    missing = {package for tool, package in _PACKAGES.items() if not shutil.which(tool, path=path)}
    if missing:
        names = " ".join(sorted(missing))
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


def _user_namespaces_refused() -> str:
    """Try to enter a user namespace in a child; return the kernel's refusal, or ``""``."""
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

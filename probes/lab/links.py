"""Setup of a site's network: device, addresses, routes, buffers, egress cap.

The texts of ``ip`` and ``tc`` batches are made here by pure functions; :func:`apply_batch`
runs them in the network namespace that the calling thread is in.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from planner.model.errors import RelaydError
from probes.lab.topology import private_address, public_address

DEVICE = "wan"
MTU = 1500
PRIVATE_NETWORK, PUBLIC_NETWORK = "10.77.0.0/24", "198.18.0.0/24"

_HTB_QUEUE_S = 0.2
"""Egress queue of a VM; a flow holds only a few packets in it (TCP small queues)."""


def ip_batch(index: int, largest_window_bytes: int, verb: str) -> str:
    """Lines for ``ip -batch`` that route a site to its peers, and bring its device up before.

    Parameters
    ----------
    index : int
    largest_window_bytes : int
        Over all peers; fixes the scale factor of windows (see :mod:`probes.lab.emulator`).
    verb : str
        ``add`` for the first time, ``change`` afterwards.
    """
    networks = {private_address(index): PRIVATE_NETWORK, public_address(index): PUBLIC_NETWORK}
    lines = []
    if verb == "add":
        lines += ["link set lo up", f"link set {DEVICE} mtu {MTU} txqueuelen 4000 up"]
        lines += [f"addr add {address}/32 dev {DEVICE}" for address in networks]
    # Windows are set in units of 2^k bytes, k from this option: 1/8192 of the largest window.
    window = max(4 * largest_window_bytes, 0xFFFF)
    # The sysctl for congestion control is refused where the machine's default is another.
    lines += [
        f"route {verb} {network} dev {DEVICE} src {source} window {window} congctl cubic"
        for source, network in networks.items()
    ]
    return "\n".join([*lines, ""])


def shaping_batch(
    egress_mbps: float, verb: str, *, lasting_mbps: float, bucket_bytes: float
) -> str:
    """Lines for ``tc -batch`` that cap a site's egress.

    Parameters
    ----------
    egress_mbps : float
    verb : str
        ``add`` for the first time, ``change`` afterwards.
    lasting_mbps, bucket_bytes : float
        Of a burstable VM: the rate at which tokens come, and how many it keeps. While it has
        some, it sends at the cap.
    """
    # A burst of 2 ms lets HTB make up for late timers without being seen in 10 ms.
    late = max(round(egress_mbps * 1e6 / 8 * 0.002), 2 * MTU)
    # As long as the lasting rate empties in time: whole seconds of packets would wait otherwise.
    limit = max(round(lasting_mbps * 1e6 / 8 * _HTB_QUEUE_S / MTU), 100)
    # A class without a parent has none to borrow from: once its tokens are spent, it waits for
    # more, whatever its ceiling.
    leaf = (
        f"class {verb} dev {DEVICE} parent 1: classid 1:1 htb rate {round(lasting_mbps * 1e6)}bit "
        f"ceil {round(egress_mbps * 1e6)}bit burst {max(late, round(bucket_bytes))} cburst {late} "
        f"quantum {MTU * 10}"
    )
    queue = f"qdisc {verb} dev {DEVICE} parent 1:1 handle 2: pfifo limit {limit}"
    lines = [leaf, queue, ""]
    if verb == "add":
        lines.insert(0, f"qdisc add dev {DEVICE} root handle 1: htb default 1")
    return "\n".join(lines)


def apply_kernel_settings(
    egress_mbps: float, largest_window_bytes: int, *, is_rootless: bool
) -> None:
    """Set ``/proc/sys/net/ipv4`` for the network namespace that the calling thread is in.

    A user namespace knows no other group than the caller's (``is_rootless``).
    """
    # Half of a receive buffer is window, until the kernel knows better.
    buffer = max(4 * largest_window_bytes, 8 << 20)
    # Segments that TCP hands to the device in one packet, at least: about 1 ms of the cap. Fewer
    # and larger packets let the emulator carry gigabits.
    segments = min(max(round(egress_mbps * 1e6 / 8 * 0.001 / MTU), 2), 16)
    settings = {
        "tcp_rmem": f"4096 {buffer} {2 * buffer}",
        "tcp_wmem": f"4096 65536 {2 * buffer}",
        "tcp_min_tso_segs": str(segments),
        # The threshold that one connection ended with must not limit the next one.
        "tcp_no_metrics_save": "1",
        "tcp_slow_start_after_idle": "0",
        "ping_group_range": "0 0" if is_rootless else "0 2147483647",
    }
    for name, value in settings.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)


def apply_batch(program: str, batch: str) -> None:
    """Run ``ip`` or ``tc`` on a batch of lines.

    Raises RelaydError if the program refuses a line; shows its message.
    """
    done = subprocess.run([program, "-batch", "-"], input=batch, text=True, capture_output=True)
    if done.returncode:
        said = " ".join(done.stderr.split())
        raise RelaydError(f"The lab could not set a network up: {program} said: {said}")

"""The formats, variables for own scripts among them, and the function that writes any of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.catalogue.copies import copies
from relayd.emitting.buckets import copy
from relayd.emitting.lanes import Emission, emission
from relayd.emitting.scripts import haproxy, iperf3, socat
from relayd.emitting.text import header
from relayd.emitting.uploads import upload


def env(emission: Emission) -> str:
    """Return lines that a shell can source; values are quoted where they need it.

    Addresses that were not given are left out, so ``set -u`` notices.
    """
    plan = emission.plan
    figures: dict[str, object] = {
        "PLAN_ID": plan.plan_id,
        "SNAPSHOT": plan.snapshot.id,
        "VERDICT": plan.verdict,
        "SRC": emission.sources[0].region,
        "DST": emission.destinations[0].region,
        "VOLUME_GB": emission.volume_gb,
        "THROUGHPUT_GBPS": plan.throughput_gbps,
        "THROUGHPUT_GBPS_LOW": plan.throughput_gbps_low,
        "THROUGHPUT_GBPS_HIGH": plan.throughput_gbps_high,
        "DURATION_S": plan.duration_s,
        "COST_USD": plan.cost_usd.total,
        "LANES": len(emission.lanes),
    }
    for lane in emission.lanes:
        name = f"LANE_{lane.number}"
        figures[f"{name}_PATH"] = " ".join(vm.region for vm in lane.vms)
        figures[f"{name}_VMS"] = " ".join(f"{vm.region}/{vm.number}" for vm in lane.vms)
        figures[f"{name}_SHARE"] = lane.share
        figures[f"{name}_CONNECTIONS"] = lane.connections
        figures[f"{name}_THROUGHPUT_GBPS"] = lane.throughput_gbps
        figures[f"{name}_PORT"] = emission.port_of(lane)
    written = {
        name: f"{value:.6g}" if isinstance(value, float) else shlex.quote(str(value))
        for name, value in figures.items()
    }
    lines = [f"RELAYD_{name}={value}" for name, value in written.items()]
    ends = (*emission.sources, *emission.relays, *emission.destinations)
    lines += [f"{vm.variable}={shlex.quote(vm.address)}" for vm in ends if vm.address]
    return header(emission, "Variables") + "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Emission], str]] = {
    "haproxy": haproxy,
    "socat": socat,
    "iperf3": iperf3,
    **{name: partial(upload, tool=name) for name in ("rclone", "aws-cli", "azcopy", "gcloud")},
    **{name: partial(copy, tool=name) for name in ("storage-transfer", "datasync", "skyplane")},
    "env": env,
}
_TO_VMS = ("haproxy", "socat", "iperf3", "env")
"""Of these, lanes end at VMs; of the others, at an object store."""
DEFAULT_PORT = 5201  # of iperf3


def emit(
    plan: Answer | Mapping[str, Any] | str,
    to: str,
    *,
    endpoints: Mapping[str, str | Sequence[str]] = {},
    port: int = DEFAULT_PORT,
) -> str:
    """Return a plan as a script or a configuration of a tool.

    Parameters
    ----------
    plan : Plan, mapping or str
        Of one transfer, or its JSON.
    to : str
        A key of :data:`FORMATS`, such as ``rclone``.
    endpoints : mapping, optional
        Region of the plan to the address of its VM, or to a sequence of several VMs' addresses.
        What is not given stays a variable, without which the script stops and says what it is.
    port : int
        On which relays and destinations listen; where a plan has several chains of VMs, the next
        ones follow.

    Raises
    ------
    InputError
        If there is no such format, it does not fit the plan, or an address is none.
    """
    if to not in FORMATS:
        raise InputError("emit", f"must be one of {', '.join(FORMATS)}", value=to)
    made = emission(plan, endpoints, port, to_vms=to in _TO_VMS)
    if made.src_bucket and to in copies()["tool"]:
        return copy(made, to)
    return FORMATS[to](made)

"""The formats, variables for own scripts among them, and the function that writes any of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.catalogue.copies import copies
from relayd.emitting.buckets import copy
from relayd.emitting.lanes import Emission, emission
from relayd.emitting.scripts import haproxy, iperf3, socat
from relayd.emitting.text import header
from relayd.emitting.uploads import rclone, to_store


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
        "VOLUME_GB": _figure(emission.volume_gb),
        "THROUGHPUT_GBPS": _figure(plan.throughput_gbps),
        "THROUGHPUT_GBPS_LOW": _figure(plan.throughput_gbps_low),
        "THROUGHPUT_GBPS_HIGH": _figure(plan.throughput_gbps_high),
        "DURATION_S": _figure(plan.duration_s),
        "COST_USD": _figure(plan.cost_usd.total),
        "LANES": len(emission.lanes),
    }
    for lane in emission.lanes:
        name = f"LANE_{lane.number}"
        figures[f"{name}_PATH"] = " ".join(vm.region for vm in lane.vms)
        figures[f"{name}_VMS"] = " ".join(f"{vm.region}/{vm.number}" for vm in lane.vms)
        figures[f"{name}_SHARE"] = _figure(lane.share)
        figures[f"{name}_CONNECTIONS"] = lane.connections
        figures[f"{name}_THROUGHPUT_GBPS"] = _figure(lane.throughput_gbps)
        figures[f"{name}_PORT"] = emission.port_of(lane)
    lines = [f"RELAYD_{name}={shlex.quote(str(value))}" for name, value in figures.items()]
    ends = (*emission.sources, *emission.relays, *emission.destinations)
    lines += [f"{vm.variable}={shlex.quote(vm.address)}" for vm in ends if vm.address]
    return header(emission, "Variables") + "\n".join(lines) + "\n"


def _figure(value: float) -> str:
    return f"{value:.6g}"


OF_BUCKETS = ("storage-transfer", "datasync", "skyplane")


class Format(NamedTuple):
    """One format: what writes it, and whether lanes end at VMs or at an object store."""

    write: Callable[[Emission], str]
    to_vms: bool


FORMATS = {
    "haproxy": Format(haproxy, True),
    "socat": Format(socat, True),
    "iperf3": Format(iperf3, True),
    "rclone": Format(rclone, False),
    **{n: Format(partial(to_store, tool=n), False) for n in ("aws-cli", "azcopy", "gcloud")},
    **{name: Format(partial(copy, tool=name), False) for name in OF_BUCKETS},
    "env": Format(env, True),
}
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
    how = FORMATS[to]
    made = emission(plan, endpoints, port, to_vms=how.to_vms)
    if made.src_bucket and to in copies()["tool"]:
        return copy(made, to)
    return how.write(made)

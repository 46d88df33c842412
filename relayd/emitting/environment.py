"""A plan as ``KEY=value`` lines, for your own scripts."""

from __future__ import annotations

import shlex

from relayd.emitting.lanes import Emission
from relayd.emitting.text import header


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
        vms = [lane.src, lane.relay, lane.dst] if lane.relay else [lane.src, lane.dst]
        name = f"LANE_{lane.number}"
        figures[f"{name}_PATH"] = " ".join(vm.region for vm in vms)
        figures[f"{name}_VMS"] = " ".join(f"{vm.region}/{vm.number}" for vm in vms)
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

"""A plan as variables, for scripts of one's own."""

from __future__ import annotations

import shlex

from relayd.emitting.emitter import Emitter
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


ENV = Emitter("env", "the plan as `RELAYD_...=value` lines, for scripts of your own", env, order=40)

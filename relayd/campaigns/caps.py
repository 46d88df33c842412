"""Caps of VMs that campaigns have measured, and whether a VM is worth recreating."""

from __future__ import annotations

from planner.model.catalogue import Catalogue
from probes.analysis.fleet_caps import CAP_METRICS, VmCap, vm_caps
from relayd.store import Store

CAP_NAMES = {"egress_cap_mbps": "egress", "ingress_cap_mbps": "ingress"}


def measured_caps(store: Store, catalogue: Catalogue) -> list[VmCap]:
    """Return the newest caps in a store, those of VMs that are worth recreating first."""
    samples = (sample for metric in CAP_METRICS for sample in store.samples.read(metric=metric))
    return vm_caps(samples, catalogue)


def cap_json(cap: VmCap) -> dict[str, object]:
    """Return a cap and the advice on it as plain values."""
    advice = cap.advice
    return {
        "host": cap.host,
        "region": cap.region,
        "vm_type": cap.vm_type,
        "cap": CAP_NAMES[cap.metric],
        "mbps": cap.mbps,
        "measured_at_s": cap.measured_at_s,
        "catalogue_mbps": cap.nominal_mbps,
        "others_of_type": cap.others,
        "recreate": cap.recreate,
        "odds": advice and advice.odds,
        "tries_to_be_sure": advice and advice.tries_to_be_sure,
        "expected_mbps": advice and advice.expected_mbps,
        "slower_share": advice and advice.percentile,
        "text": cap.text,
    }

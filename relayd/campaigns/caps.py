"""Caps of VMs that campaigns have measured, and whether a VM is worth recreating."""

from __future__ import annotations

from planner.model.catalogue import Catalogue
from probes.analysis.evidence import Record
from probes.analysis.fleet_caps import CAP_NAMES, vm_caps
from relayd.store import Store


def measured_caps(store: Store, catalogue: Catalogue) -> list[Record]:
    """Return the newest caps in a store, those of VMs that are worth recreating first."""
    samples = (sample for metric in CAP_NAMES for sample in store.samples.read(metric=metric))
    return vm_caps(samples, catalogue)

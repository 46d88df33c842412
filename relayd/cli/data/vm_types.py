"""``relayd vm-types``: the VM types of the catalogue, the cheapest first."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from difflib import get_close_matches
from fnmatch import fnmatchcase

from planner.model.catalogue import Catalogue, VmType
from planner.model.errors import InputError
from relayd.cli import text
from relayd.cli.options import number, wan_of, whole_number
from relayd.cli.output import print_rows

HEADER = (
    "VM type",
    "vCPUs",
    "to other clouds",
    "to own regions",
    "receives",
    "one flow",
    "$/h",
    "$/h per Gbit/s",
)


def run(options: argparse.Namespace) -> int:
    """List VM types."""
    found = _selected(wan_of(options).catalogue, options)
    return print_rows(
        options, "vm_types", [asdict(vm) for vm in found], shown=lambda: _table(found)
    )


def _table(found: list[VmType]) -> str:
    units = "Rates are Gbit/s of one VM, sustained. --json has their sources."
    return "\n".join(
        [text.table(HEADER, [_row(vm) for vm in found]), *([text.filled(units)] if found else [])]
    )


def _selected(catalogue: Catalogue, options: argparse.Namespace) -> list[VmType]:
    """Return the VM types that all options allow, the cheapest first."""
    providers = {name.partition(":")[0] for name in catalogue.vm_types}
    for provider in options.provider:
        if provider not in providers:
            remedy = f"Known are {', '.join(sorted(providers))}."
            raise InputError("--provider", "has no VM types", value=provider, remedy=remedy)
    least_gbps = number(options.min_gbps, "--min-gbps") if options.min_gbps else 0.0
    least_vcpus = whole_number(options.min_vcpus, "--min-vcpus") if options.min_vcpus else 0
    patterns = options.names or ["*"]
    for pattern in options.names:
        if not any(_fits(vm_id, pattern) for vm_id in catalogue.vm_types):
            names = [vm_id.partition(":")[2] for vm_id in catalogue.vm_types]
            near = get_close_matches(pattern.rpartition(":")[2], names, n=3)
            remedy = f"Did you mean {' or '.join(near)}?" if near else "Such as m5 or D*_v5."
            raise InputError("type", "is no VM type of the catalogue", value=pattern, remedy=remedy)
    found = (
        catalogue.vm_types[vm_id]
        for vm_id in catalogue.vm_types
        if (not options.provider or vm_id.partition(":")[0] in options.provider)
        and any(_fits(vm_id, pattern) for pattern in patterns)
    )
    return [vm for vm in found if vm.egress_gbps >= least_gbps and vm.vcpus >= least_vcpus]


def _fits(vm_id: str, pattern: str) -> bool:
    """Whether a type's id, or its name alone, begins with a pattern, whatever the case."""
    names = (vm_id.casefold(), vm_id.partition(":")[2].casefold())
    return any(fnmatchcase(name, f"{pattern.casefold()}*") for name in names)


def _row(vm: VmType) -> tuple[str, ...]:
    own_regions_gbps = vm.region_egress_gbps or vm.egress_gbps
    return (
        vm.id,
        str(vm.vcpus),
        f"{vm.egress_gbps:g}",
        f"{own_regions_gbps:g}",
        f"{vm.ingress_gbps:g}",
        f"{vm.flow_gbps:g}",
        f"{vm.price_usd_per_h:.4g}",
        f"{vm.price_usd_per_h / vm.egress_gbps:.3g}",
    )

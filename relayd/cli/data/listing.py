"""``relayd data regions``, ``vm-types`` and ``links``: what the catalogue and the network have."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from planner.model.aliases import resolve_many
from planner.model.catalogue import Catalogue, VmType
from planner.model.document import as_json, regions_as_json
from planner.model.errors import InputError
from planner.model.estimate import Estimate
from planner.model.link import Link
from relayd.cli import text
from relayd.cli.options import number, wan_of, whole_number
from relayd.cli.output import print_rows
from relayd.tables.link_table import link_row
from relayd.times import utc_text


def regions(options: argparse.Namespace) -> int:
    """List the regions that all rules cover, with their aliases."""
    wan = wan_of(options)
    found = wan.regions()
    for field, rules in (
        ("region", options.rules),
        ("--provider", [f"provider:{name}" for name in options.provider]),
        ("--country", [f"country:{name}" for name in options.country]),
    ):
        if rules:
            known = [region.id for region in found]
            covered = resolve_many(rules, wan.catalogue, field=field, known=known)
            found = [region for region in found if region.id in covered]
    listed = regions_as_json(found, wan.sites(), wan.catalogue)
    return print_rows(
        options,
        "regions",
        listed,
        shown=lambda: text.page().table_of(
            listed,
            "region=id | city | country | continent | access | VM type=type | aliases",
            left=True,
            access=lambda of: of["access"],
            type=lambda of: of["vm_type"].partition(":")[2],
            aliases=lambda of: " ".join(of["aliases"]),
        ),
        document=lambda: {"snapshot": asdict(wan.snapshot), "regions": listed},
    )


def vm_types(options: argparse.Namespace) -> int:
    """List VM types, the cheapest first."""
    found = _vm_types(wan_of(options).catalogue, options)
    units = "Rates are Gbit/s of one VM, sustained. --json has their sources."

    def shown() -> str:
        listed = text.page().table_of(
            found,
            "VM type=id | vCPUs=vcpus | to other clouds=egress_gbps:g | to own regions=own | "
            "receives=ingress_gbps:g | one flow=flow_gbps:g | $/h=price_usd_per_h:.4g | "
            "$/h per Gbit/s=per_gbps",
            own=lambda vm: f"{vm.region_egress_gbps or vm.egress_gbps:g}",
            per_gbps=lambda vm: f"{vm.price_usd_per_h / vm.egress_gbps:.3g}",
        )
        return f"{listed}\n{text.page().filled(units)}"

    return print_rows(options, "vm_types", [asdict(vm) for vm in found], shown=shown)


def _vm_types(catalogue: Catalogue, options: argparse.Namespace) -> list[VmType]:
    """Return the VM types that all options allow, the cheapest first."""
    providers = {name.partition(":")[0] for name in catalogue.vm_types}
    for provider in options.provider:
        if provider not in providers:
            remedy = f"Known are {', '.join(sorted(providers))}."
            raise InputError("--provider", "has no VM types", value=provider, remedy=remedy)
    least_gbps = number(options.min_gbps, "--min-gbps") if options.min_gbps else 0.0
    least_vcpus = whole_number(options.min_vcpus, "--min-vcpus") if options.min_vcpus else 0
    for pattern in options.names:
        if not any(_fits(vm_id, pattern) for vm_id in catalogue.vm_types):
            names = [vm_id.partition(":")[2] for vm_id in catalogue.vm_types]
            near = get_close_matches(pattern.rpartition(":")[2], names, n=3)
            remedy = f"Did you mean {' or '.join(near)}?" if near else "For example: m5 or D*_v5."
            raise InputError("type", "is no VM type of the catalogue", value=pattern, remedy=remedy)
    return [
        vm
        for vm in catalogue.vm_types.values()
        if (not options.provider or vm.provider in options.provider)
        and any(_fits(vm.id, pattern) for pattern in options.names or ["*"])
        and vm.egress_gbps >= least_gbps
        and vm.vcpus >= least_vcpus
    ]


def _fits(vm_id: str, pattern: str) -> bool:
    """Return whether a type's id or bare name begins with a pattern, in any case of letters."""
    names = (vm_id.casefold(), vm_id.partition(":")[2].casefold())
    return any(fnmatchcase(name, f"{pattern.casefold()}*") for name in names)


def links(options: argparse.Namespace) -> int:
    """List links with their estimates."""
    wan = wan_of(options)
    ends = ((options.src, "--src"), (options.dst, "--dst"))
    links = wan.links(*(name and wan.resolve(name, field).region_id for name, field in ends))
    now_s = time.time()
    return print_rows(
        options,
        "links",
        [_row(link) for link in links],
        shown=lambda: text.page().table_of(
            links,
            "link | RTT ms=rtt_ms.expected:.1f | flow Mbit/s=per_flow_mbps.expected:.0f | "
            "VM pair Gbit/s=aggregate_gbps.expected:.2f | bounds | "
            "source=aggregate_gbps.source | age",
            bounds=lambda link: f"{link.aggregate_gbps.low:.2f}-{link.aggregate_gbps.high:.2f}",
            age=lambda link: _age(link.aggregate_gbps, now_s),
        ),
        document=lambda: {
            "snapshot": asdict(wan.snapshot),
            "links": [as_json(link) for link in links],
        },
    )


def _row(link: Link) -> dict[str, Any]:
    timed = {k: v for k, v in link_row(link).items() if k.endswith("_measured_at")}
    return link_row(link) | {
        k: None if at_s is None else utc_text(at_s) for k, at_s in timed.items()
    }


def _age(estimate: Estimate, now_s: float) -> str:
    if estimate.measured_at_s is None:
        return "-"
    days = max(0.0, (now_s - estimate.measured_at_s) / 86400)
    return f"{days:.1f} d" if days < 100 else f"{days / 365.25:.1f} y"

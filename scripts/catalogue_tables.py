"""Write the catalogue's tables of 2026 from their sources.

    python -m scripts.catalogue_tables ../shared/data/catalogue-2026

The folder holds the figures of the providers' lists, one row a VM type; its README says where each
is from. Written is what plans need of them, so that a diff of ``configs/`` shows what changed.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from planner.model.catalogue import Catalogue

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
# Google Cloud lets a VM receive as much at most from public addresses (network bandwidth page).
GCP_PUBLIC_INGRESS_GBPS = 20.0
VM_TYPES_HEAD = """\
# VM types of 2026: list prices and documented limits, none of them measured. What vm-types.toml
# measured goes before. Written by `python -m scripts.catalogue_tables`.
#
# network_gbps   sustained, over all destinations: AWS baseline, Azure expected bandwidth, Google
#                Cloud maximum egress on the default tier
# wan_gbps       to other clouds and the internet: AWS, half of network_gbps or 5, whichever is
#                more, from 32 vCPUs, else at most 5 (EC2 guide); Google Cloud 7; Azure no less
# region_gbps    to other regions of the provider over private addresses: AWS as wan_gbps (the
#                cautious reading of its guide), the others as network_gbps
# ingress_gbps   AWS and Azure taken as network_gbps, which they do not limit it to; Google Cloud
#                20 from public addresses, or network_gbps where that is less
# flow_gbps      of one TCP connection outside a placement group; Azure documents none
# burst_gbps     AWS, "up to", for minutes; known of M and T types alone
# tier1_gbps     Google Cloud, with paid Tier_1 networking, which usd_per_h leaves out
# usd_per_h      on demand, Linux, in us-east-1, eastus and us-central1
# network_from   documented, or the series that an Azure size was given the figure of
# suggested      1 of types that relayd assumes and advises: x86-64, 4 vCPUs or more, of their
#                provider's three newest generations, with a figure of their own series
#
# source aws: EC2 tables of 2026-08-18, prices of 2026-07-20, both by karpenter-provider-aws 1d92708
# source azure: Azure size pages (2024 to 2026), prices of 2026-06-18 by karpenter-provider-azure
# source gcp: Cyclenerd's machine types (2026-03-22), prices of 2026-08-03 by karpenter-provider-gcp
"""
VM_TYPE_COLUMNS = (
    *("id", "vcpus", "network_gbps", "wan_gbps", "region_gbps", "ingress_gbps", "flow_gbps"),
    *("burst_gbps", "tier1_gbps", "usd_per_h", "network_from", "suggested"),
)
LEAST_VCPUS = 4
GENERATIONS = 3
_SERIES = {
    "aws": re.compile(r"aws:[a-z]+(?P<generation>\d+)(?P<kind>[a-z]*)[.-]"),
    "azure": re.compile(r"azure:[A-Z]+\d+(?P<kind>[a-z]*)_v(?P<generation>\d+)"),
    "gcp": re.compile(r"gcp:(?P<kind>[a-z]+(?P<generation>\d+)[a-z]*)-"),
}
"""Providers' names of the series of a VM type (their naming conventions, 2026)."""


VM_PRICES_HEAD = """\
# What VMs cost in each region, as a multiple of us-east-1, eastus and us-central1: the median over
# types sold in both. Types differ by a few percent about it, in India by a third. Written by
# `python -m scripts.catalogue_tables`.
#
# AWS: six types of SkyPilot's catalogue v7 (2025 to 2026), GovCloud from karpenter-provider-aws
# (2026-07-20). Azure: karpenter-provider-azure (2026-06-18). Google Cloud: karpenter-provider-gcp
# (2026-08-03). Where no price was found, the dearest of the provider's public regions
# on the same continent.
"""
REMEMBERED_RATIOS = {"aws:sa-east-1": "1.59"}


def vm_types(folder: Path) -> str:
    """Return ``vm-types.csv``."""
    rows = [_vm_type(row) for row in _rows(folder / "vm_types_2026.csv")]
    return VM_TYPES_HEAD + _written(VM_TYPE_COLUMNS, with_suggested(rows))


def with_suggested(rows: Sequence[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """Yield rows of the table with its last column."""
    series = {str(row["id"]): _series(str(row["id"])) for row in rows}
    newest = dict[str, int]()
    for vm, (generation, is_x86) in series.items():
        if is_x86:
            provider = vm.partition(":")[0]
            newest[provider] = max(generation, newest.get(provider, 0))
    for row in rows:
        generation, is_x86 = series[str(row["id"])]
        is_new = generation > newest.get(str(row["id"]).partition(":")[0], 0) - GENERATIONS
        has_cpus, own = int(str(row["vcpus"])) >= LEAST_VCPUS, row["network_from"] == "documented"
        yield {**row, "suggested": int(is_x86 and is_new and has_cpus and own)}


def _vm_type(row: Mapping[str, str]) -> dict[str, object]:
    provider, network = row["provider"], float(row["network_gbps"])
    basis = row["network_basis"]
    copied = basis.partition("sibling series ")[2]
    ingress = min(network, GCP_PUBLIC_INGRESS_GBPS) if provider == "gcp" else network
    return {
        "id": f"{provider}:{row['type'].removeprefix('Standard_')}",
        # A shared core bills half a vCPU or a quarter: the guest sees one or two.
        "vcpus": max(1, round(float(row["vcpus"]))),
        "network_gbps": row["network_gbps"],
        "wan_gbps": row["wan_egress_gbps"],
        "region_gbps": row["cross_region_private_gbps"],
        "ingress_gbps": f"{ingress:g}",
        "flow_gbps": row["flow_gbps"],
        "burst_gbps": row["network_burst_gbps"],
        "tier1_gbps": row["tier1_gbps"],
        "usd_per_h": row["price_usd_per_h"],
        "network_from": f"as {copied}" if copied else "documented",
    }


def vm_prices(folder: Path) -> str:
    """Return ``vm-prices.csv``: all regions, one without a figure at its dearest peer's."""
    known = {_region(row): row for row in _rows(folder / "vm_price_by_region_2026.csv")}
    regions, rows = _rows(folder / "regions_2026.csv"), []
    for region in regions:
        name = _region(region)
        if row := known.get(name):
            counted = f"median of {row['n_types']} types, {row['min_ratio']} to {row['max_ratio']}"
            rows.append((name, row["ratio_to_reference"], counted))
        elif name in REMEMBERED_RATIOS:
            rows.append((name, REMEMBERED_RATIOS[name], "from memory"))
        else:
            near = (region["provider"], region["continent"], "general")
            peers = [r for r in regions if (r["provider"], r["continent"], r["status"]) == near]
            dearest = max(
                (known[peer] for peer in map(_region, peers) if peer in known),
                key=lambda row: float(row["ratio_to_reference"]),
            )
            counted = f"not known, as {_region(dearest)}, the dearest near it"
            rows.append((name, dearest["ratio_to_reference"], counted))
    names = ("region", "ratio", "checked")
    return VM_PRICES_HEAD + _written(names, (dict(zip(names, row, strict=True)) for row in rows))


def _region(row: Mapping[str, str]) -> str:
    return f"{row['provider']}:{row['region']}"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _written(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer: csv.DictWriter[str] = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _series(vm_type: str) -> tuple[int, bool]:
    """Return a type's generation, 0 where its name has none, and whether it runs x86-64.

    AWS marks ARM by a g after the generation, Azure by a p; Google Cloud has T2A, C4A and N4A.
    """
    provider = vm_type.partition(":")[0]
    found = _SERIES[provider].match(vm_type)
    if not found:
        return 0, True
    arm = {"aws": "g" in found["kind"], "azure": "p" in found["kind"]}
    is_arm = arm.get(provider, found["kind"] in {"t2a", "c4a", "n4a"})
    return int(found["generation"]), not is_arm


GRID_VM_TYPES = ("aws:m5.8xlarge", "azure:D32_v5", "gcp:n2-standard-32")
"""Those that the open grid of 2022 was measured with."""


def default_vm_types(catalogue: Catalogue) -> dict[str, str]:
    """Return the default VM type of each provider, by the rule of ``configs/vm-types.toml``.

    The cheapest suggested one that carries as much as that of the grid.
    """
    found = {}
    for grid in map(catalogue.vm_types.__getitem__, GRID_VM_TYPES):
        enough = [
            (vm.price_usd_per_h, vm.id)
            for vm in catalogue.vm_types.values()
            if vm.suggested and not vm.burstable
            if vm.provider == grid.provider and vm.egress_gbps >= grid.egress_gbps
        ]
        found[grid.provider] = min(enough)[1]
    return found


TABLES = {"vm-types.csv": vm_types, "vm-prices.csv": vm_prices}


def main() -> None:
    """Write the tables."""
    for name, table in TABLES.items():
        (CONFIGS / name).write_text(table(Path(sys.argv[1])), "utf-8")


if __name__ == "__main__":
    main()

"""Write the catalogue's tables of 2026 from their sources.

    python -m scripts.catalogue_tables ../shared/data/catalogue-2026

The folder holds the figures of the providers' lists, one row a VM type; its README says where each
is from. Written is what plans need of them, so that a diff of ``configs/`` shows what changed.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

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
#
# source aws: EC2 tables of 2026-08-18, prices of 2026-07-20, both by karpenter-provider-aws 1d92708
# source azure: Azure size pages (2024 to 2026), prices of 2026-06-18 by karpenter-provider-azure
# source gcp: Cyclenerd's machine types (2026-03-22), prices of 2026-08-03 by karpenter-provider-gcp
"""
VM_TYPE_COLUMNS = (
    *("id", "vcpus", "network_gbps", "wan_gbps", "region_gbps", "ingress_gbps", "flow_gbps"),
    *("burst_gbps", "tier1_gbps", "usd_per_h", "network_from"),
)


def vm_types(folder: Path) -> str:
    """Return ``vm-types.csv``."""
    rows = _rows(folder / "vm_types_2026.csv")
    return VM_TYPES_HEAD + _written(VM_TYPE_COLUMNS, map(_vm_type, rows))


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


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _written(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer: csv.DictWriter[str] = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


TABLES = {"vm-types.csv": vm_types}


def main() -> None:
    """Write the tables."""
    for name, table in TABLES.items():
        (CONFIGS / name).write_text(table(Path(sys.argv[1])), "utf-8")


if __name__ == "__main__":
    main()

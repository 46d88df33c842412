"""The providers' lists under ``configs/``: a CSV row an entry, whose head says what columns are."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

_WINDOW_MB = 3.0  # of a VM whose window nobody measured: half of tcp_rmem's 6 MiB


def document_of_list(name: str, text: str) -> dict[str, Any]:
    """Return a list as the document of a catalogue file."""
    lines = text.splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if name == "vm-prices.csv":
        return {"vm_price_ratios": {row["region"]: float(row["ratio"]) for row in rows}}
    head = {
        line[2:].partition(":")[0]: line.partition(": ")[2]
        for line in lines
        if line.startswith("# source ")
    }
    return {"vm_type": [_entry(row, head) for row in rows]}


def _entry(row: Mapping[str, str], head: Mapping[str, str]) -> dict[str, Any]:
    provider = row["id"].partition(":")[0]
    network, wan = float(row["network_gbps"]), float(row["wan_gbps"])
    sustained = f"{network:g} Gbit/s {row['network_from']}"
    said = [
        f"sustained {sustained}",
        "to other clouds as documented" if wan == network else f"{wan:g} to other clouds by rule",
        "not measured",
        head[f"source {provider}"],
    ]
    entry: dict[str, Any] = {
        "id": row["id"],
        "vcpus": int(row["vcpus"]),
        "egress_gbps": wan,
        "ingress_gbps": float(row["ingress_gbps"]),
        "flow_gbps": float(row["flow_gbps"] or wan),
        "window_mb": _WINDOW_MB,
        "price_usd_per_h": float(row["usd_per_h"]),
        "source": "; ".join(said),
        "region_egress_gbps": float(row["region_gbps"]),
    }
    for name in ("burst_gbps", "tier1_gbps"):
        if row[name]:
            entry[name] = float(row[name])
    return entry

"""Where relays gain most, without a service."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import relayd
from relayd.http.answers import relay_gains_bytes


def test_pairs_whose_ends_may_run_no_vm_are_left_out(tmp_path: Path) -> None:
    found = json.loads(relay_gains_bytes(relayd.open(), 5, inf, 1))["relays"]
    src = next(entry["src"] for entry in found if entry["src"].startswith("azure:"))
    quota = tmp_path / "quota.toml"
    quota.write_text(f'[[vcpu_quota]]\nregion = "{src}"\nfamily = "cores"\nvcpus = 1\n')
    under_quota = json.loads(relay_gains_bytes(relayd.open(catalogues=[quota]), 5, inf, 1))[
        "relays"
    ]
    assert under_quota
    assert all(src not in (entry["src"], entry["dst"]) for entry in under_quota)

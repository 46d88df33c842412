"""The library's face, on a baseline and on a store."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import relayd
from planner.model.network import Network
from relayd.sources.wan import MOST_DERIVED_KEPT, NetworkCache
from relayd.tables.matrices import Matrix
from tests.relayd.building import imported

# Lately: what was measured long ago has faded.
MEASURED_AT_S = time.time() // 3600 * 3600 - 7200
MEASURED_AT = datetime.fromtimestamp(MEASURED_AT_S, UTC).isoformat()
GRID = f"""\
src,dst,rtt_ms,aggregate_gbps,per_flow_mbps,connections,measured_at,src_vm,dst_vm
azure:eastus,aws:ap-northeast-1,163,2.0,250,64,{MEASURED_AT},D32_v5,m5.8xlarge
azure:eastus,azure:japaneast,156,15.6,300,64,{MEASURED_AT},D32_v5,D32_v5
azure:japaneast,aws:ap-northeast-1,4,9.6,,64,{MEASURED_AT},D32_v5,m5.8xlarge
"""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("grid") / "store.db", *GRID.splitlines())


def source_of(matrix: Matrix, src: str, dst: str) -> str | None:
    assert matrix.sources is not None
    return matrix.sources[matrix.regions.index(src)][matrix.regions.index(dst)]


def test_refresh_finds_what_was_imported_since(tmp_path: Path) -> None:
    db = imported(tmp_path / "store.db", *GRID.splitlines())
    wan = relayd.open(db)
    first = wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1)
    later = GRID.replace(",2.0,", ",8.0,").replace(MEASURED_AT, f"{MEASURED_AT_S + 3600:.0f}")
    imported(db, *later.splitlines())
    assert wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1).snapshot == first.snapshot
    wan.refresh()
    second = wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1)
    assert second.snapshot != first.snapshot
    before, after = first.direct.throughput_gbps, second.direct.throughput_gbps
    assert before is not None
    assert after is not None
    assert after > 1.5 * before


def test_matrices_are_labelled(db: Path) -> None:
    wan = relayd.open(db)
    aggregate, pair = wan.matrix("aggregate"), ("azure:eastus", "aws:ap-northeast-1")
    assert aggregate[pair] == pytest.approx(2.0, rel=0.01)
    assert aggregate.unit == "Gbit/s"
    assert aggregate.values.shape == (40, 40)
    assert np.isnan(np.diag(aggregate.values)).all()
    for metric, value in (("rtt", 156), ("per-flow", 300)):
        assert wan.matrix(metric)["azure:eastus", "azure:japaneast"] == value  # type: ignore[arg-type]
    assert wan.matrix("fee")["azure:eastus", "azure:japaneast"] > 0
    gain = wan.matrix("relay-gain", measured_only=True)
    assert gain.regions == ("aws:ap-northeast-1", "azure:eastus", "azure:japaneast")
    assert gain[pair] == pytest.approx(9.6 / 2.0, rel=0.02)
    # What a value rests on: a relay's gain on the least sure of the links that it compares.
    assert source_of(aggregate, *pair) == source_of(gain, *pair) == "measured"
    assert source_of(aggregate, "azure:eastus", "gcp:us-east1") != "measured"
    assert source_of(aggregate, "azure:eastus", "azure:eastus") is None
    assert source_of(gain, *pair[::-1]) != "measured"
    age = wan.matrix("age")
    assert age.sources is None
    assert age[pair] == pytest.approx(time.time() - MEASURED_AT_S, abs=600)
    assert np.isnan(age["azure:eastus", "gcp:us-east1"])
    with pytest.raises(relayd.InputError, match="relay-gain"):
        wan.matrix("mood")  # type: ignore[arg-type]


def test_names_go_with_the_other_end() -> None:
    wan = relayd.open()
    assert wan.plan("frankfurt", "gcp:us-east1").request["src"] == "gcp:europe-west3"
    assert wan.plan("azure:eastus", "sa").request["dst"] == "azure:brazilsouth"
    with pytest.raises(relayd.AmbiguousRegionError):
        wan.plan("frankfurt", "london")


def test_a_month_of_traffic_moves_to_a_cheaper_tier() -> None:
    wan = relayd.open()
    fresh = wan.plan("aws:us-east-1", "gcp:us-east1", volume_gb=1000)
    late = wan.plan("aws:us-east-1", "gcp:us-east1", volume_gb=1000, month_to_date_gb={"aws": 2e5})
    across = wan.plan("aws:us-east-1", "gcp:us-east1", volume_gb=20_000)
    assert late.cost_usd.egress < fresh.cost_usd.egress
    assert fresh.cost_usd.egress * 20 > across.cost_usd.egress > late.cost_usd.egress * 20


def test_opening_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(relayd.StoreError, match="does not exist"):
        relayd.open(tmp_path / "nothing.db").plan("us-east", "sa")
    with pytest.raises(relayd.StoreError, match="address of ftp"):
        relayd.open("ftp://localhost/x").plan("us-east", "sa")
    with pytest.raises(relayd.CatalogueError, match="can't be read"):
        relayd.open(catalogues=[tmp_path / "none.toml"])


def test_a_site_of_ones_own_takes_part(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        '[[region]]\nid = "own:cellar"\ncity = "Bonn"\ncountry = "DE"\ncontinent = "EU"\n'
        'area = "EU"\nlatitude_deg = 50.73\nlongitude_deg = 7.1\n'
        '[[vm_type]]\nid = "own:server"\nvcpus = 8\negress_gbps = 1.0\ningress_gbps = 1.0\n'
        "flow_gbps = 1.0\nwindow_mb = 6.0\nprice_usd_per_h = 0\n"
        '[default_vm_types]\nown = "own:server"\n'
        '[[egress]]\nname = "our line"\nfrom = ["own:*"]\nto = ["*"]\nusd_per_gb = 0\n'
    )
    wan = relayd.open(catalogues=[own])
    plan = wan.plan("own:cellar", "aws:eu-central-1", allow=["country:DE"], volume_gb=50, vms=1)
    assert plan.verdict == "direct"
    assert plan.throughput_gbps == pytest.approx(1.0)
    assert plan.cost_usd.egress == 0


def test_derived_networks_are_kept_within_bounds() -> None:
    names = [f"aws:r{n}" for n in range(2)]
    small = Network.from_matrices(names, np.ones((2, 2)))
    cache = NetworkCache(small, small)
    derived = [cache.derived((n,), Network.with_, small) for n in range(MOST_DERIVED_KEPT + 1)]
    assert cache.derived((1,), Network.with_, small) is derived[1]
    assert cache.derived((0,), Network.with_, small) is not derived[0]

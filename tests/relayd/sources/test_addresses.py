"""Over which addresses links are, and what that changes in plans."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import relayd
from planner.model.baseline.modelled_links import baseline_network
from planner.model.document import document_of, network_of
from planner.model.estimate import WANTED_ADDRESSES
from planner.model.throughput import AGGREGATE_LAWS, PRIVATE_LAWS
from relayd.__main__ import main
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.link_evidence import evidence_of
from relayd.sources.addresses import over_addresses
from relayd.sources.wan import Wan
from relayd.store import open_store
from tests.relayd.building import complete, imported, stored
from tests.shared_data import GRID_VM_TYPES

SRC, DST, OTHER = "gcp:us-east1", "gcp:us-east4", "aws:us-east-1"
PUBLIC_GBPS = AGGREGATE_LAWS["gcp", "gcp"].limit_gbps
PRIVATE_GBPS = PRIVATE_LAWS["gcp", "gcp"].limit_gbps
TYPES = ("--src-vm", GRID_VM_TYPES["gcp"], "--dst-vm", GRID_VM_TYPES["gcp"])
TODAY = time.strftime("%Y-%m-%d", time.gmtime())
HEAD = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
NETWORK = f"""
[[region]]
id = "{SRC}"
private_network = "vpc"
[[region]]
id = "{DST}"
private_network = "vpc"
[[region]]
id = "{OTHER}"
private_network = "vpc of another account"
"""


def declared(folder: Path) -> Wan:
    """Return the baseline with a catalogue that says which regions share a private network."""
    file, db = folder / "own.toml", folder / "relayd.db"
    file.write_text(NETWORK)
    return relayd.open(stored(db, []), catalogues=[file])


def test_links_go_over_private_addresses_where_both_ends_can(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    network = wan.network
    assert network.link(SRC, DST).address == network.link(DST, SRC).address == "private"
    assert network.link(SRC, OTHER).address == "public"
    assert network.link(SRC, "gcp:us-west1").address == "public"
    assert network.others[SRC][DST].address == "public"


def test_a_plan_uses_the_kind_that_is_asked_for_and_names_it(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    memory = Wan(wan.catalogue, wan.network)
    asked: dict[str, Any] = {"vms": 1, "objective": "time", "vm_types": GRID_VM_TYPES}
    for wanted in WANTED_ADDRESSES:
        plan = wan.plan(SRC, DST, addresses=wanted, **asked)
        direct = next(path for path in plan.paths if len(path.regions) == 2)
        address = "public" if wanted == "public" else "private"
        assert (direct.addresses, plan.request["addresses"]) == ((address,), wanted)
        gbps = PUBLIC_GBPS if wanted == "public" else PRIVATE_GBPS
        assert plan.direct.throughput_gbps == pytest.approx(gbps)
        assert memory.plan(SRC, DST, addresses=wanted, **asked).plan_id == plan.plan_id
    # Other VM types keep the kind. By the provider's page; 7 over public addresses.
    larger = wan.plan(SRC, DST, **{**asked, "vm_types": {"gcp": "gcp:n2-standard-8"}})
    direct = next(path for path in larger.paths if len(path.regions) == 2)
    assert direct.addresses == ("private",)
    assert larger.direct.throughput_gbps == pytest.approx(16.0)


def both_kinds(folder: Path) -> Path:
    """Return a store with tests of one link over both kinds of address, made by importing them."""
    db, when = folder / "relayd.db", TODAY
    for address, mbps in (("public", 6000), ("private", 25_000)):
        rows = 3 * complete((SRC, DST), f"20,{mbps},64,60,{when}")
        imported(db, HEAD, *rows, more=("--address", address, *TYPES))
    return db


def test_a_store_keeps_what_was_measured_over_both_kinds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = both_kinds(tmp_path)
    wan = relayd.open(db)
    memory = Wan(wan.catalogue, network_of(document_of(wan.network)))
    asked: dict[str, Any] = {"vms": 1, "objective": "time", "relays": "none"}
    for wanted in WANTED_ADDRESSES:
        gbps = 6.0 if wanted == "public" else 25.0
        plan = wan.plan(SRC, DST, addresses=wanted, **asked)
        assert plan.throughput_gbps == pytest.approx(gbps, rel=0.03), wanted
        assert plan.paths[0].addresses == ("public" if wanted == "public" else "private",)
        assert memory.plan(SRC, DST, addresses=wanted, **asked).plan_id == plan.plan_id
    larger = wan.plan(SRC, DST, vms=1, vm_types={"gcp": "gcp:n2-standard-8"}, relays="none")
    assert larger.paths[0].addresses == ("private",)
    capsys.readouterr()
    assert main(["data", "links", "--src", SRC, "--db", str(db)]) == 0
    shown = capsys.readouterr().out
    assert f"{SRC} -> {DST} (private)" in shown
    assert shown.count("(private)") == 1
    site = wan.sites()[SRC]
    assert site.egress_gbps.expected == 7.0  # whatever was sent over private addresses
    assert site.egress("private").expected == 32.0
    with open_store(db, mode="read") as store:
        found = evidence_of(store, wan.network, wan.catalogue, SRC, DST)
    (evidence,) = [figure for figure in found if figure.origin.quantity == "aggregate_gbps"]
    assert {sample.value for sample in evidence.used[0].samples} == {25_000.0}


def test_any_kind_leads_back_to_any_other() -> None:
    catalogue = load_catalogue(())
    usual = baseline_network(catalogue)
    assert over_addresses(usual, catalogue, "public") is usual
    private = over_addresses(usual, catalogue, "private")
    assert {
        link.address for link in private if link.src.split(":")[0] == link.dst.split(":")[0]
    } == {"private"}
    assert over_addresses(private, catalogue, "public").usual == usual.usual
    again = over_addresses(private, catalogue, "auto")
    assert again.usual == over_addresses(usual, catalogue, "auto").usual
    assert over_addresses(again, catalogue, "private") == private
    assert network_of(document_of(private)) == private


def test_googles_regions_reach_each_other_by_private_addresses_unasked(tmp_path: Path) -> None:
    """Its default network spans all regions; other providers' regions have none in common."""
    wan = relayd.open()
    ask: dict[str, Any] = {"vms": 1, "relays": "none", "objective": "time"}
    ask["vm_types"] = GRID_VM_TYPES
    usual, public = wan.plan(SRC, DST, **ask), wan.plan(SRC, DST, addresses="public", **ask)
    assert (usual.paths[0].addresses, public.paths[0].addresses) == (("private",), ("public",))
    rates = (usual.throughput_gbps, public.throughput_gbps)
    assert rates == pytest.approx((PRIVATE_GBPS, PUBLIC_GBPS))
    assert usual.cost_usd.egress == public.cost_usd.egress  # Google charges both alike
    (said,) = [warning for warning in usual.warnings if "private" in warning]
    assert said.startswith(f"{SRC} -> {DST} is taken to be over private addresses")
    assert said.endswith("ask for public ones, which carry less: `--addresses public`.")
    assert not any("addresses" in warning for warning in public.warnings)
    # Two of one provider and one of another: the links to that one are over public addresses.
    kinds = {(link.src[:3], link.dst[:3]): link.address for link in wan.network}
    assert {pair for pair, kind in kinds.items() if kind == "private"} == {("gcp", "gcp")}
    # What was measured over public addresses is what hosts are known to use.
    db = tmp_path / "relayd.db"
    imported(db, HEAD, *(3 * complete((SRC, DST), f"20,6000,64,60,{TODAY}")))
    measured = relayd.open(db)
    assert {link.address for link in measured.network} == {"public"}
    plan = measured.plan(SRC, DST, vms=1, relays="none", objective="time")
    assert plan.throughput_gbps == pytest.approx(6.0, rel=0.03)
    assert any("carry more: `--addresses private`" in warning for warning in plan.warnings)

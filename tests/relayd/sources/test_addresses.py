"""Over which addresses links are, and what that changes in plans."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import relayd
from planner.model.baseline.modelled_links import baseline_network
from planner.model.document import document_of, network_of
from planner.model.estimate import WANTED_ADDRESSES, WantedAddresses
from planner.model.network import Network
from planner.model.throughput import AGGREGATE_LAWS, PRIVATE_LAWS
from relayd.__main__ import main
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.link_evidence import FigureEvidence, evidence_of
from relayd.sources.addresses import over_addresses
from relayd.sources.memory import MemorySource
from relayd.sources.wan import Wan
from relayd.store import open_store

SRC, DST, OTHER = "gcp:us-east1", "gcp:us-east4", "aws:us-east-1"
PUBLIC_GBPS = AGGREGATE_LAWS["gcp", "gcp"].limit_gbps
PRIVATE_GBPS = PRIVATE_LAWS["gcp", "gcp"].limit_gbps
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
    file = folder / "own.toml"
    file.write_text(NETWORK)
    db = folder / "relayd.db"
    open_store(db, mode="create").close()
    return relayd.open(db, catalogues=[file])


def test_links_go_over_private_addresses_where_both_ends_can(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    network = wan.network
    assert network.link(SRC, DST).address == network.link(DST, SRC).address == "private"
    assert network.link(SRC, OTHER).address == "public"
    assert network.link(SRC, "gcp:us-west1").address == "public"
    assert network.others[SRC][DST].address == "public"


@pytest.mark.parametrize(
    ("asked", "gbps", "address"),
    [
        ("auto", PRIVATE_GBPS, "private"),
        ("private", PRIVATE_GBPS, "private"),
        ("public", PUBLIC_GBPS, "public"),
    ],
)
def test_a_plan_uses_the_kind_that_is_asked_for_and_names_it(
    tmp_path: Path, asked: WantedAddresses, gbps: float, address: str
) -> None:
    plan = declared(tmp_path).plan(SRC, DST, vms=1, objective="time", addresses=asked)
    direct = next(path for path in plan.paths if len(path.regions) == 2)
    assert direct.addresses == (address,)
    assert plan.direct.throughput_gbps == pytest.approx(gbps)
    assert plan.request["addresses"] == asked


def imported(folder: Path) -> Path:
    """Return a store with tests of one link over both kinds of address, made by importing them."""
    db, when = folder / "relayd.db", time.strftime("%Y-%m-%d", time.gmtime())
    for address, mbps in (("public", 6000), ("private", 25_000)):
        file = folder / f"{address}.csv"
        rows = [
            f"{src},{dst},20,{mbps},64,60,{when}"
            for src, dst in ((SRC, DST), (DST, SRC))
            for _ in range(3)
        ]
        head = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
        file.write_text("\n".join([head, *rows]) + "\n")
        words = ["import", "csv", str(file), "--address", address, "--db", str(db)]
        assert main(words) == 0
    return db


def test_a_store_keeps_what_was_measured_over_both_kinds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = imported(tmp_path)
    wan = relayd.open(db)
    memory = Wan(MemorySource(wan.catalogue, network_of(document_of(wan.network))))
    for asked in WANTED_ADDRESSES:
        gbps = 6.0 if asked == "public" else 25.0
        plan = wan.plan(SRC, DST, vms=1, objective="time", relays="none", addresses=asked)
        assert plan.throughput_gbps == pytest.approx(gbps, rel=0.03), asked
        assert plan.paths[0].addresses == ("public" if asked == "public" else "private",)
        again = memory.plan(SRC, DST, vms=1, objective="time", relays="none", addresses=asked)
        assert plan.plan_id == again.plan_id
    capsys.readouterr()
    assert main(["links", "--src", SRC, "--db", str(db)]) == 0
    shown = capsys.readouterr().out
    assert f"{SRC} -> {DST} (private)" in shown
    assert shown.count("(private)") == 1
    site = wan.sites()[SRC]
    assert site.egress_gbps.expected == 7.0  # whatever was sent over private addresses
    assert site.egress("private").expected == 32.0
    evidence = {figure.origin.quantity: figure for figure in evidence_in(db, wan, wan.network)}[
        "aggregate_gbps"
    ]
    assert {sample.value for sample in evidence.used[0].samples} == {25_000.0}


def evidence_in(db: Path, wan: Wan, network: Network) -> list[FigureEvidence]:
    with open_store(db, mode="read") as store:
        return evidence_of(store, network, wan.catalogue, SRC, DST)


def test_any_kind_leads_back_to_any_other() -> None:
    catalogue = load_catalogue(())
    usual = baseline_network(catalogue)
    assert over_addresses(usual, catalogue, "auto") is usual  # nobody says so
    private = over_addresses(usual, catalogue, "private")
    assert {
        link.address for link in private if link.src.split(":")[0] == link.dst.split(":")[0]
    } == {"private"}
    again = over_addresses(private, catalogue, "auto")
    assert again.usual == usual.usual
    assert over_addresses(again, catalogue, "private") == private
    assert network_of(document_of(private)) == private


def test_other_vm_types_keep_the_kind(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    larger = wan.plan(SRC, DST, vms=1, vm_types={"gcp": "gcp:n2-standard-8"}, objective="time")
    direct = next(path for path in larger.paths if len(path.regions) == 2)
    assert direct.addresses == ("private",)
    # By the provider's page; 7 over public addresses.
    assert larger.direct.throughput_gbps == pytest.approx(16.0)


def test_other_vm_types_keep_the_kind_that_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wan = relayd.open(imported(tmp_path))
    larger = wan.plan(SRC, DST, vms=1, vm_types={"gcp": "gcp:n2-standard-8"}, relays="none")
    assert larger.paths[0].addresses == ("private",)


def test_a_network_in_memory_answers_as_it_was_given(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    memory = Wan(MemorySource(wan.catalogue, wan.network))
    for asked in WANTED_ADDRESSES:
        assert memory.plan(SRC, DST, addresses=asked).plan_id == (
            wan.plan(SRC, DST, addresses=asked).plan_id
        )

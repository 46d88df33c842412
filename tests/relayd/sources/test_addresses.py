"""Over which addresses links are, and what that changes in plans."""

from __future__ import annotations

from pathlib import Path

import pytest

import relayd
from planner.model.baseline import baseline_network
from planner.model.document import document_of, network_of
from planner.model.estimate import WANTED_ADDRESSES, WantedAddresses
from planner.model.throughput import AGGREGATE_LAWS, PRIVATE_LAWS
from relayd.catalogue.loading import load_catalogue
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


def test_a_network_in_memory_answers_as_it_was_given(tmp_path: Path) -> None:
    wan = declared(tmp_path)
    memory = Wan(MemorySource(wan.catalogue, wan.network))
    for asked in WANTED_ADDRESSES:
        assert memory.plan(SRC, DST, addresses=asked).plan_id == (
            wan.plan(SRC, DST, addresses=asked).plan_id
        )

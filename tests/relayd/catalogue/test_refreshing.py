"""Prices of documents over the catalogue: what changes, what does not, and back again."""

from __future__ import annotations

import json
import tomllib
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from relayd.catalogue.loading import catalogue_of, content_of, load_catalogue
from relayd.catalogue.overlays import overlays_in_force, toml_of, undo_overlay
from relayd.sources.stored import StoredWan
from tests.properties import examples
from tests.relayd.catalogue.conftest import Commands
from tests.relayd.catalogue.documents import (
    Price,
    azure_page,
    azure_traffic,
    azure_vm,
    skypilot_folder,
    written,
)

SRC, DST = "azure:brazilsouth", "aws:us-east-1"
AWS_REGIONS = ("us-east-1", "us-west-2", "sa-east-1", "eu-central-1", "ap-southeast-1")
AZURE_REGIONS = ("eastus", "brazilsouth", "westeurope", "mexicocentral")


def names_of(provider: str, count: int) -> list[str]:
    """Return VM types of a provider by its own names; among them what plans assume."""
    known = load_catalogue([], [])
    usual = known.default_vm_types[provider]
    others = [t for t in known.vm_types if t.startswith(f"{provider}:") and t != usual]
    return [name.partition(":")[2] for name in [usual, *others[:: len(others) // count]][:count]]


def aws_prices() -> list[Price]:
    """Return a few hundred prices: some as in the catalogue, others moved."""
    known = load_catalogue([], [])
    found = []
    for number, name in enumerate(names_of("aws", 40)):
        for region in AWS_REGIONS:
            usd = known.vm_usd_per_h(f"aws:{region}", f"aws:{name}")
            found.append((name, region, round(usd * (1.07 if number % 4 else 1.0), 5)))
    return [*found, ("zz9.large", "us-east-1", 3.0), ("m5.large", "moon-1", 0.2)]


def azure_items() -> list[dict[str, object]]:
    items = []
    windows = {"productName": "Virtual Machines Dv5 Series Windows"}
    for number, name in enumerate(names_of("azure", 30)):
        for region in AZURE_REGIONS:
            usd = round(0.1 + 0.013 * number + 0.01 * len(region), 4)
            items.append(azure_vm(name, region, usd))
            items.append(azure_vm(name, region, usd / 5, skuName=f"{name} Spot"))
            items.append(azure_vm(name, region, usd * 2, **windows))
    for region, factor in (("brazilsouth", 2.0), ("westeurope", 1.0)):
        for from_gb, usd in ((0, 0.0), (100, 0.08), (10_335, 0.075), (51_295, 0.06)):
            items.append(azure_traffic(region, from_gb, usd * factor))
    return items


def plan_ids() -> list[tuple[str, float]]:
    wan = StoredWan(load_catalogue(), None)
    plans = [wan.plan(src, dst, volume_gb=500) for src, dst in ((SRC, DST), (DST, SRC))]
    return [(plan.plan_id, plan.cost_usd.total) for plan in plans]


@pytest.mark.slow
def test_a_round_trip_leaves_plans_as_they_were(
    tmp_path: Path, overlays: Path, catalogue: Commands
) -> None:
    before = plan_ids()
    listed = aws_prices()
    sky = skypilot_folder(tmp_path / "skypilot", "aws", listed)
    items = azure_items()
    pages = tmp_path / "azure"
    pages.mkdir()
    written(pages / "1.json", azure_page(items[:200], "https://prices.azure.com/?skip=1000"))
    written(pages / "2.json", azure_page(items[200:]))

    seen = json.loads(catalogue("diff", sky, pages, "--json").out)
    assert seen["changes"]
    assert seen["overlay"] is None
    assert not overlays.exists()
    assert plan_ids() == before
    assert (seen["new_types"], seen["new_regions"]) == (["aws:zz9.large"], ["aws:moon-1"])
    assert seen["vm_prices"]["known"] == 40 * 5 + 30 * 4
    assert any(effect["changes"] for effect in seen["plans"])

    catalogue("import", sky, "--as-of", "2026-11-20")
    assert "In force: 0002-" in catalogue("import", pages).out
    after = plan_ids()
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in zip(before, after, strict=True))
    assert plan_ids() == after  # from the cache
    found = load_catalogue()
    for name, region, usd in listed[:-2]:
        assert found.vm_usd_per_h(f"aws:{region}", f"aws:{name}") == pytest.approx(usd, rel=2e-4)
    for item in items[: 30 * 4 * 3 : 3]:
        where = f"azure:{item['armRegionName']}"
        vm_type = f"azure:{str(item['armSkuName']).removeprefix('Standard_')}"
        assert found.vm_usd_per_h(where, vm_type) == pytest.approx(item["retailPrice"], rel=2e-4)
    tiers = found.egress_price(SRC, DST).tiers
    assert [(t.usd_per_gb, t.up_to_gb) for t in tiers] == [
        (0.16, 10_335.0),
        (0.15, 51_295.0),
        (0.12, inf),
    ]
    # What is in force already is not laid a second time.
    assert "Nothing changes" in catalogue("import", sky, pages, "--as-of", "2026-11-20").out

    assert "0001-" in catalogue("show").out
    figures = json.loads(catalogue("show", SRC, "azure:D32_v5", "--json").out)["figures"]
    assert "Azure Retail Prices" in {figure["source"] for figure in figures}
    assert "vm-prices.csv" in {Path(figure["file"]).name for figure in figures}

    catalogue("undo", "0001")
    assert plan_ids() == before
    assert overlays_in_force() == []
    with pytest.raises(InputError, match="finds no overlay"):
        undo_overlay()


def test_what_is_shown_may_be_named_as_elsewhere(catalogue: Commands) -> None:
    shown = catalogue("show", "Ireland", "m5.8xlarge").out
    assert "region aws:eu-west-1" in shown
    assert "vm_type aws:m5.8xlarge" in shown
    assert "is no region" in catalogue("show", "atlantis", code=2).err


def test_ones_own_prices_go_before_imported_ones(tmp_path: Path, catalogue: Commands) -> None:
    name = load_catalogue([], []).default_vm_types["azure"].partition(":")[2]
    traffic = [azure_traffic("brazilsouth", 0, 0.2), azure_traffic("eastus", 0, 0.1)]
    vms = [azure_vm(name, region, 2.0) for region in ("eastus", "brazilsouth", "westeurope")]
    catalogue("import", written(tmp_path / "page.json", azure_page([*traffic, *vms])))

    def with_own(text: str) -> Catalogue:
        (tmp_path / "own.toml").write_text(text)
        return load_catalogue([tmp_path / "own.toml"])

    vm_type = f"azure:{name}"
    found = with_own(
        '[[egress]]\nname = "azure-internet-south-america"\nusd_per_gb = 0.03\n'
        '[vm_price_ratios]\n"azure:westeurope" = 1.5\n'
        f'[[vm_price]]\ntype = "{vm_type}"\nusd_per_h = {{ brazilsouth = 1.0 }}\n'
    )
    assert found.egress_price(SRC, DST).tiers[0].usd_per_gb == 0.03
    assert found.egress_price("azure:eastus", DST).tiers[0].usd_per_gb == 0.1
    where = ("azure:eastus", "azure:brazilsouth", "azure:westeurope", "azure:norwayeast")
    ratio = found.vm_price_ratios["azure:norwayeast"]
    assert [found.vm_usd_per_h(region, vm_type) for region in where] == pytest.approx(
        [2.0, 1.0, 3.0, 2.0 * ratio]
    )
    # An entry that states only where its prices are from changes none, and isn't an agreed price.
    seen = with_own(
        f'discounts.azure.vm = 0.5\n[[vm_price]]\ntype = "{vm_type}"\nsource = "seen"\n'
    )
    assert seen.vm_usd_per_h("azure:eastus", vm_type) == 0.5 * 2.0
    own = with_own(f'[[vm_type]]\nid = "{vm_type}"\nprice_usd_per_h = 1.2\n')
    assert own.vm_usd_per_h("azure:eastus", vm_type) == 1.2
    assert own.vm_usd_per_h(SRC, vm_type) == 1.2 * own.vm_price_ratios[SRC]


def test_discounts_come_off_list_prices_and_not_off_agreed_ones(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        "discounts.aws.egress = 0.3\n"
        "discounts.aws.vm = 0.1\n"
        'discounts."aws:sa-east-1" = { egress = 0.5, vm = 0.2 }\n'
        'discounts."aws:c5.large".vm = 0.4\n'
        '[[vm_price]]\ntype = "aws:m5.8xlarge"\nusd_per_h = { us-west-2 = 1.0 }\n'
        '[[egress]]\nname = "mine"\nfrom = ["aws:eu-west-1"]\nto = ["gcp:*"]\nusd_per_gb = 0.01\n'
    )
    plain = load_catalogue()
    less = catalogue_of(json.loads(json.dumps(content_of(load_catalogue([own])))), "as a mirror")

    def fees(catalogue: Catalogue, src: str, dst: str) -> list[float]:
        return [tier.usd_per_gb for tier in catalogue.egress_price(src, dst).tiers]

    for src, factor in (("aws:us-east-1", 0.7), ("aws:sa-east-1", 0.5), ("azure:eastus", 1.0)):
        usual = fees(plain, src, "gcp:us-central1")
        assert fees(less, src, "gcp:us-central1") == pytest.approx([fee * factor for fee in usual])
    assert fees(less, "aws:eu-west-1", "gcp:us-central1") == [0.01]
    assert "discount of 0.3" in less.egress_price("aws:us-east-1", "gcp:us-central1").source
    for region, vm_type, factor in (
        ("aws:us-east-1", "aws:m5.8xlarge", 0.9),
        ("aws:sa-east-1", "aws:m5.8xlarge", 0.8),
        ("aws:sa-east-1", "aws:c5.large", 0.6),
        ("azure:eastus", "azure:D32_v5", 1.0),
    ):
        usd = plain.vm_usd_per_h(region, vm_type)
        assert less.vm_usd_per_h(region, vm_type) == pytest.approx(usd * factor)
    assert less.vm_usd_per_h("aws:us-west-2", "aws:m5.8xlarge") == 1.0


def test_a_wrong_line_of_ones_own_is_named(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    for line, words in (
        ("discounts.aws.egress = 30", "must be below 1"),
        ("discounts.aws.storage = 0.1", "is not a known field"),
        ("discounts.amazon.vm = 0.1", "is no provider, region or VM type"),
        ('[[vm_price]]\ntype = "aws:m5.large"\nusd_per_h = {moon-1 = 1.0}', "not in the catalogue"),
        ('[overlay]\nsource = "me"', "is not a part of a catalogue"),
    ):
        own.write_text(line)
        with pytest.raises(InputError, match=words):
            load_catalogue([own])


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.one_of(WORDS, st.floats(allow_nan=False, allow_infinity=False), st.booleans())
TABLES = st.dictionaries(
    WORDS,
    st.one_of(VALUES, st.lists(WORDS, max_size=3), st.dictionaries(WORDS, VALUES, max_size=3)),
)


@settings(max_examples=examples(20))
@given(st.lists(TABLES, min_size=1, max_size=3), TABLES)
def test_what_is_written_as_toml_is_read_back(
    several: list[dict[str, object]], one: dict[str, object]
) -> None:
    document: dict[str, Any] = {"overlay": one, "egress": several}
    assert tomllib.loads(toml_of(document)) == document

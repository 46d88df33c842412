"""Price lists from a server: pages, what has not changed, what breaks off, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relayd.catalogue import downloading
from relayd.catalogue.loading import load_catalogue
from relayd.catalogue.overlays import overlays_in_force
from tests.relayd.catalogue.conftest import Commands
from tests.relayd.catalogue.documents import (
    aws_as_json,
    aws_traffic_table,
    aws_vm_table,
    azure_page,
    azure_traffic,
    azure_vm,
    google_sku,
    written,
)
from tests.relayd.catalogue.publisher import Publisher, publishing
from tests.relayd.conftest import Outcome

API = "/api/retail/prices"
VMS, TRAFFIC = (
    f"{API}?currencyCode=USD&$filter=serviceName eq '{name}' and priceType eq 'Consumption'"
    for name in ("Virtual Machines", "Bandwidth")
)
SECOND = f"{API}?page=2"
FAMILIES_OF_GOOGLE = ("gcp:e2", "gcp:n1", "gcp:n2", "gcp:n2d", "gcp:c4a")
OFFERS = "/offers/v1.0/aws"


Update = Callable[..., Outcome]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setattr(downloading, "_FIRST_PAUSE_S", 0.001)
    with publishing() as publisher:
        yield publisher


def publish_azure(server: Publisher, usd: float = 2.0) -> None:
    """Publish two pages of VMs and one of traffic."""
    server.put(VMS, azure_page([azure_vm("D32_v5", "eastus", usd)], f"{server.url}{SECOND}"))
    server.put(SECOND, azure_page([azure_vm("D32_v5", "brazilsouth", 4.0)]))
    server.put(
        TRAFFIC, azure_page([azure_traffic("eastus", 0, 0.0), azure_traffic("eastus", 100, 0.05)])
    )


@pytest.fixture
def update(server: Publisher, catalogue: Commands) -> Update:
    """Update from the server, which has to end with a code."""

    def run(*more: str, provider: str = "azure", code: int = 0) -> Outcome:
        words = ("update", "--provider", provider, "--url", server.url, *more)
        return catalogue(*words, code=code)

    return run


def usd_per_h(region: str) -> float:
    return load_catalogue().vm_usd_per_h(f"azure:{region}", "azure:D32_v5")


@pytest.mark.slow
def test_what_has_not_changed_is_not_fetched_again(
    server: Publisher, update: Update, catalogue: Commands
) -> None:
    publish_azure(server)
    update("--dry-run")
    assert [status for _, status in server.asked] == [200, 200, 200]
    assert overlays_in_force() == []
    server.asked.clear()
    update()
    assert [status for _, status in server.asked] == [304, 304, 304]
    assert (usd_per_h("eastus"), usd_per_h("brazilsouth")) == (2.0, 4.0)
    price = load_catalogue().egress_price("azure:eastus", "aws:us-east-1")
    assert [tier.usd_per_gb for tier in price.tiers] == [0.05]

    assert "Nothing changes" in update().out
    publish_azure(server, usd=2.5)
    server.asked.clear()
    update()
    assert [status for _, status in server.asked] == [200, 304, 304]
    assert usd_per_h("eastus") == 2.5
    assert len(overlays_in_force()) == 2
    catalogue("undo")
    assert usd_per_h("eastus") == 2.0


def test_a_list_that_breaks_off_is_fetched_again(server: Publisher, update: Update) -> None:
    publish_azure(server)
    server.broken.add(SECOND)
    server.failing[TRAFFIC] = 503
    update()
    assert [status for path, status in server.asked if path == SECOND] == [200, 200]
    assert usd_per_h("brazilsouth") == 4.0


def test_an_interrupted_update_leaves_the_old_catalogue(
    server: Publisher, update: Update, overlays: Path
) -> None:
    publish_azure(server)
    update()
    before = load_catalogue()
    publish_azure(server, usd=9.0)
    for stop in ({TRAFFIC: 404}, {SECOND: 403}):
        server.failing.update(stop)
        assert "Nothing has changed" in update(code=4).err
        assert load_catalogue() == before
    # The process is killed while it writes: what was begun counts for nothing.
    (overlays / "tmpab12.part").write_text("[[vm_price]]")
    assert load_catalogue() == before


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (f"{{url}}{SECOND}", "leads back to a page"),
        ("http://127.0.0.1:9/api", "was led to another server"),
        ("file:///etc/passwd", "was led to another server"),
    ],
)
def test_links_that_lead_astray_are_refused(
    server: Publisher, update: Update, after: str, words: str
) -> None:
    publish_azure(server)
    server.put(SECOND, azure_page([], after.format(url=server.url)))
    said = update(code=2).err
    assert words in said
    assert said.count("\n") == 1
    assert overlays_in_force() == []


def test_limits_of_size_and_time_are_said(
    server: Publisher, update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_azure(server)
    assert "the time is up" in update("--timeout", "0.000001s", code=4).err
    monkeypatch.setattr(downloading, "MOST_FILE_BYTES", 100)
    assert "it is too large" in update(code=4).err
    assert "publishes no list" in update(provider="hal", code=2).err


TRAFFIC_OF_AWS = [
    ("sa-east-1", "", 0.0, 0.14),
    ("sa-east-1", "", 10_240.0, 0.13),
    ("sa-east-1", "us-east-1", 0.0, 0.12),
    ("sa-east-1", "us-west-2", 0.0, 0.12),
    ("sa-east-1", "moon-1", 0.0, 0.12),
]


def check_aws() -> None:
    found = load_catalogue()
    assert found.vm_usd_per_h("aws:us-east-1", "aws:m5.8xlarge") == 1.6
    tiers = found.egress_price("aws:sa-east-1", "gcp:us-central1").tiers
    assert [tier.usd_per_gb for tier in tiers] == [0.14, 0.13]
    price = found.egress_price("aws:sa-east-1", "aws:us-west-2")
    assert ([tier.usd_per_gb for tier in price.tiers], price.as_of) == ([0.12], "2026-11-19")


def test_lists_of_aws_are_found_by_their_index(server: Publisher, update: Update) -> None:
    server.put(
        f"{OFFERS}/index.json",
        {
            "offers": {
                "AmazonEC2": {"currentRegionIndexUrl": f"{OFFERS}/EC2/region_index.json"},
                "AWSDataTransfer": {"currentVersionUrl": f"{OFFERS}/transfer/index.json"},
            }
        },
    )
    region = {"regionCode": "us-east-1", "currentVersionUrl": f"{OFFERS}/EC2/us-east-1/index.json"}
    server.put(f"{OFFERS}/EC2/region_index.json", {"regions": {"us-east-1": region}})
    server.put(
        f"{OFFERS}/EC2/us-east-1/index.csv", aws_vm_table([("m5.8xlarge", "us-east-1", 1.6)])
    )
    server.put(f"{OFFERS}/transfer/index.csv", aws_traffic_table(TRAFFIC_OF_AWS))
    update("--region", "aws:moon-1", provider="aws", code=4)
    update("--region", "aws:us-east-1", provider="aws")
    check_aws()


def test_lists_of_aws_say_the_same_as_json(tmp_path: Path, catalogue: Commands) -> None:
    tables = (aws_vm_table([("m5.8xlarge", "us-east-1", 1.6)]), aws_traffic_table(TRAFFIC_OF_AWS))
    paths = [
        written(tmp_path / f"{number}.json", aws_as_json(table))
        for number, table in enumerate(tables)
    ]
    catalogue("import", *paths)
    check_aws()


def test_a_list_of_aws_without_region_codes_is_told_as_one(
    tmp_path: Path, catalogue: Commands
) -> None:
    table = aws_traffic_table(TRAFFIC_OF_AWS).replace(b"From Region Code", b"From Location")
    (tmp_path / "old.csv").write_bytes(table)
    told = catalogue("import", tmp_path / "old.csv", code=2)
    assert "prices without a region code, as in old lists: download a new one" in told.err


def test_types_of_google_cost_what_their_cores_and_memory_do(
    server: Publisher, update: Update, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the parts' prices of 2026 every type costs what Google's table of types says."""
    parts = {
        "E2 Instance": (0.02181159, 0.00292353),
        "N1 Predefined Instance": (0.031611, 0.004237),
        "N2 Instance": (0.031611, 0.004237),
        "N2D AMD Instance": (0.027502, 0.003686),
        "C4A Arm Instance": (0.03086, 0.00351),
    }
    here, there = "us-central1", "southamerica-east1"
    skus = [
        google_sku(f"{prefix}{family} {part}", region, usd * factor)
        for family, prices in parts.items()
        for part, usd in zip(("Core", "Ram"), prices, strict=True)
        for region, factor in ((here, 1.0), (there, 1.7))
        for prefix in ("", "Spot Preemptible ", "Custom ")
    ]
    first = "/v1/services/6F81-5844-456A/skus?currencyCode=USD&pageSize=5000"
    server.put(first, {"skus": skus[:31], "nextPageToken": "more"})
    server.put(f"{first}&pageToken=more", {"skus": skus[31:], "nextPageToken": ""})

    assert "needs a key" in update(provider="gcp", code=2).err
    monkeypatch.setenv("RELAYD_GOOGLE_API_KEY", "secret")
    before = load_catalogue()
    update(provider="gcp")
    assert server.headers[-1]["X-Goog-Api-Key"] == "secret"
    after = load_catalogue()
    priced = [name for name in after.vm_types if name.partition("-")[0] in FAMILIES_OF_GOOGLE]
    assert len(priced) > 80
    for name in priced:
        usd = before.vm_usd_per_h(f"gcp:{here}", name)
        assert after.vm_usd_per_h(f"gcp:{here}", name) == pytest.approx(usd, rel=0.003)
        if name in after.vm_prices:
            assert after.vm_usd_per_h(f"gcp:{there}", name) == pytest.approx(usd * 1.7, rel=0.003)
    assert len(after.vm_prices) > 70

"""What /metrics says of links, of campaigns and of the process."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from planner.model.baseline.modelled_links import baseline_network
from planner.model.estimate import Origin
from planner.model.link_states import LinkState
from planner.model.network import Network
from relayd.catalogue.loading import load_catalogue
from relayd.http.monitoring.metrics import Metrics, link_gauges
from relayd.http.store_access import StoreAccess
from relayd.http.workers import Workers
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.store.campaigns import CampaignTotals, campaign_totals
from tests.http.running import REGIONS, Served

FAMILIES = 10
"""That have a value for each link, or may have."""


def figures(text: bytes) -> dict[str, dict[tuple[str, str], float]]:
    """Return the values of families about links, by name and pair, as a Prometheus reads them."""
    return {
        family.name: {
            (sample.labels["src"], sample.labels["dst"]): sample.value for sample in family.samples
        }
        for family in text_string_to_metric_families(text.decode())
        if family.name.startswith("relayd_link_")
    }


def test_gauges_of_links_are_what_the_service_answers(service: Served) -> None:
    found = figures(service.get("/metrics").content)
    links = service.get("/v1/links?source=measured").json["links"]
    # No sample touches the other regions of the network.
    assert set(found["relayd_link_state"]) == {(link["src"], link["dst"]) for link in links}
    assert len(links) == len(REGIONS) * (len(REGIONS) - 1)
    gains = service.get("/v1/matrix?metric=relay-gain").json
    for link in links:
        pair = link["src"], link["dst"]
        rate = link["aggregate_gbps"]
        for name, bound in (("", "expected"), ("_low", "low"), ("_high", "high")):
            value = found[f"relayd_link_throughput{name}_bytes_per_second"][pair]
            assert value * 8e-9 == pytest.approx(rate[bound], rel=1e-5)
        assert found["relayd_link_rtt_seconds"][pair] == pytest.approx(0.1, rel=1e-5)
        # 2024-05-01, by the clock of whoever reads it.
        assert found["relayd_link_measured_timestamp_seconds"][pair] == 1714521600
        assert found["relayd_link_state"][pair] == 0
        rows = [gains["regions"].index(end) for end in pair]
        gain = gains["values"][rows[0]][rows[1]]
        assert found["relayd_link_relay_gain_ratio"][pair] == pytest.approx(gain, rel=1e-5)
        usd = service.get(f"/v1/links/{pair[0]}/{pair[1]}").json["usd_per_gb"]
        assert found["relayd_link_egress_usd_per_gigabyte"][pair] == pytest.approx(usd, rel=1e-5)
    assert found["relayd_link_loss_ratio"] == {}  # nobody measured it
    assert found["relayd_link_prediction_error_ratio"] == {}


def test_a_process_says_what_runs_and_what_it_takes(service: Served) -> None:
    text = service.get("/metrics", **{"Accept-Encoding": "gzip"})
    assert text.headers["Content-Encoding"] == "gzip"
    said = service.get("/metrics").content.decode()
    version = service.get("/openapi.json").json["info"]["version"]
    assert f'version="{version}"}} 1.0' in said.split("relayd_build_info{")[1].split("\n")[0]
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
        assert f"\n{name} " in said
    assert "\nrelayd_campaign_egress_usd_total 0.0\n" in said
    assert "\nrelayd_snapshot_failures_total 0.0\n" in said


def measured_wan(regions: list[str]) -> Wan:
    """Return a network whose links were all measured."""
    rates = np.random.default_rng(1).uniform(0.1, 9.9, (len(regions), len(regions)))
    network = Network.from_matrices(regions, rates)
    origin = Origin("measured", "stated", newest_s=1.7e9)
    links = {
        src: {
            dst: replace(link, rtt_ms=replace(link.rtt_ms, origin=origin))
            for dst, link in row.items()
        }
        for src, row in network.usual.items()
    }
    return Wan(load_catalogue(()), network.with_(links=links))


def test_sixty_three_regions_fit_into_a_scrape() -> None:
    text = link_gauges(measured_wan([f"provider:some-region-{n}" for n in range(63)]), 5000)
    assert text.count(b"\nrelayd_link_state{") == 63 * 62
    # Had every family a value for each link, at its longest.
    lines = [line for line in text.split(b"\n") if line.startswith(b"relayd_link_")]
    assert FAMILIES * 63 * 62 * max(len(line) for line in lines) < 5e6


def test_a_bound_keeps_links_out_but_none_that_is_not_up() -> None:
    regions = [f"a:{n}" for n in range(9)]
    wan = measured_wan(regions)
    worst = LinkState("a:8", "a:7", "down", "2026-11-01T00:00:00Z", "no reply")
    down = wan.network.with_(link_states={("a:8", "a:7"): worst})
    text = link_gauges(Wan(wan.catalogue, down), 5)
    assert b"\nrelayd_links_known 72.0\n" in text
    assert b"\nrelayd_links_shown 5.0\n" in text
    states = figures(text)["relayd_link_state"]
    assert sorted(states.values()) == [0, 0, 0, 0, 2]
    assert states["a:8", "a:7"] == 2


def test_of_a_baseline_there_is_nothing_to_watch() -> None:
    catalogue = load_catalogue(())
    text = link_gauges(Wan(catalogue, baseline_network(catalogue)), 5000)
    assert b"\nrelayd_links_known 0.0\n" in text
    assert b"relayd_link_" not in text


def test_a_scrape_waits_for_no_worker_once_it_has_gauges(tmp_path: Path) -> None:
    class Busy:
        """Workers of which one is free for the first question alone."""

        asked = 0

        async def ask(self, version: str, question: object, most: int) -> bytes:
            self.asked += 1
            if self.asked == 2:
                await asyncio.sleep(3600)
            return f"{version} {most}".encode()

    async def scrape() -> list[bytes]:
        store = StoreAccess(tmp_path / "relayd.db")
        metrics = Metrics(store, cast("Workers", Busy()), 7)
        found = [await metrics.text(version) for version in "aabb"]
        metrics.close()
        await store.close()
        return found

    assert all(found.endswith(b"a 7") for found in asyncio.run(scrape()))


def test_names_that_would_end_a_label_are_escaped() -> None:
    regions = ['a"b', "c\\d", "e\nf"]
    found = figures(link_gauges(measured_wan(regions), 100))
    assert set(found["relayd_link_state"]) == set(permutations(regions, 2))


def test_what_campaigns_took_is_added_up(tmp_path: Path) -> None:
    with open_store(tmp_path / "new.db", mode="create") as store:
        assert campaign_totals(store.database) == CampaignTotals(0.0, 0.0, 0, 0)
        with store.database.transaction():
            store.database.change(
                "INSERT INTO campaigns (id, options, started_at_s) VALUES (1, '{}', ?)",
                (time.time(),),
            )
            store.database.change_many(
                "INSERT INTO probes (campaign_id, stage, task, status, sent_gb, usd) "
                "VALUES (1, 'survey', '{}', ?, ?, ?)",
                [("done", 2.0, 0.25), ("failed", 1.0, 0.5), ("planned", 0.0, 0.0)],
            )
        assert campaign_totals(store.database) == CampaignTotals(0.75, 3.0, 1, 1)

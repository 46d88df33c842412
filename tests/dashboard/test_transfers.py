"""Transfers under way: a live page from the list to the question what to do with the rest."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from probes.liveness.link_health import LinkHealth
from relayd.client.blocking import RemoteWan
from relayd.store import open_store
from relayd.store.events import Events
from relayd.store.links import LinkStates
from tests.dashboard.browser import WAIT_MS, Watched, holds_at_all_widths, query_of, ran, watched
from tests.dashboard.conftest import QUICK, copy_of_grid
from tests.dashboard.transfers import CANADA, HOSTILE, SAO_PAULO, report_transfers
from tests.http.running import Served, run, served
from tests.waiting import eventually


@pytest.fixture(scope="module")
def own_grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_grid(tmp_path_factory)


@pytest.fixture(scope="module")
def reported(own_grid: Path) -> Iterator[Served]:
    """A service to which transfers in every state were reported."""
    with served(own_grid, environment=QUICK) as service:
        report_transfers(service.url)
        yield service


def test_late_and_slow_transfers_lead_to_what_to_do(reported: Served, page: Watched) -> None:
    shown = page.open(f"{reported.url}/now")
    flying = shown.locator("table.in-flight tbody tr")
    expect(flying).to_have_count(3, timeout=WAIT_MS)
    late = shown.locator("table.transfers tr[data-key=slow-1]")
    for text in (HOSTILE.replace("\u202e", "\\u202e"), "running, slow, late", "over 3 paths"):
        expect(late).to_contain_text(text)
    # One state of four, in the API and on the page, and one colour for each.
    listed = reported.get("/v1/transfers").json["transfers"]
    assert {each["id"]: each["health"] for each in listed} == {
        "nightly-7": "good",
        "slow-1": "bad",
        "logs-3": "stale",
        "finished-1": "good",
        "failed-1": "bad",
        "cancelled-1": "unknown",
    }
    colours = {"good": "good", "bad": "bad", "stale": "warn", "unknown": "muted"}
    for each in listed:
        tag = shown.locator(f"table.transfers tr[data-key={each['id']}] .tag")
        expect(tag).to_have_text(each["health"], timeout=WAIT_MS)
        expect(tag).to_have_class(f"tag {colours[each['health']]}")
    assert re.search(
        r"stale silent\s+began .* ago", shown.locator("tr[data-key=logs-3]").inner_text()
    )
    assert "2.59 TB of 20 TB (12 %)" in late.inner_text()
    assert re.search(r"3 h \d+ min after its deadline", late.inner_text())
    steady = shown.locator("table.transfers tr[data-key=nightly-7]")
    expect(steady).to_contain_text("before its deadline")
    for each in reported.get("/v1/transfers?state=in-flight").json["transfers"]:
        if each["state"] == "silent" and each["deadline_at_s"]:  # which has no forecast
            row = shown.locator(f"table.transfers tr[data-key={each['id']}]")
            expect(row.locator("td").last).to_contain_text("deadline")
    holds_at_all_widths(page)

    # By keyboard to those that failed, and to one transfer.
    ended = shown.locator("table.ended tbody tr")
    expect(ended).to_contain_text(["cancelled-1", "failed-1", "finished-1"])
    shown.locator("#ended").get_by_label("Show").select_option("failed")
    expect(ended).to_contain_text(["failed-1"], timeout=WAIT_MS)
    late.get_by_role("link").first.focus()
    shown.keyboard.press("Enter")
    expect(shown.locator("h2").first).to_contain_text("running", timeout=WAIT_MS)
    assert "much slower than the" in shown.locator(".head").inner_text()
    shown.get_by_text("Reports", exact=True).click()
    expect(shown.locator("table.reports tbody tr")).to_have_count(2)
    holds_at_all_widths(page)
    rest = shown.get_by_role("link", name="Ask what to do with the rest")
    address = urlsplit(str(rest.get_attribute("href")))
    assert parse_qs(address.query)["elapsed_s"] == ["1800"]
    rest.click()
    shown.locator("#answer", has_text="after 30 min").wait_for(timeout=WAIT_MS)


def test_progress_shows_while_the_page_is_open(
    reported: Served, own_grid: Path, page: Watched
) -> None:
    shown = page.open(f"{reported.url}/now")
    tile = shown.locator("a.tile", has_text="Transfers in flight")
    already = int(tile.locator("strong").inner_text().split(",")[0])
    words = ("us-east", "sa", "--volume", "500GB", "--id", "copy-9", "--deadline", "2h")
    begun = run("transfers", "begin", *words, db=own_grid)
    assert begun.returncode == 0, begun.stderr
    expect(tile.locator("strong")).to_have_text(re.compile(rf"^{already + 1}\b"), timeout=WAIT_MS)
    row = shown.locator("table.transfers tr[data-key=copy-9]")
    expect(row).to_contain_text("0 MB of 500 GB (0 %)", timeout=WAIT_MS)
    with RemoteWan(reported.url) as wan:
        wan.report_transfer("copy-9", 120)
        expect(row).to_contain_text("120 GB of 500 GB (24 %)", timeout=WAIT_MS)
        expect(row.get_by_role("meter")).to_have_attribute("aria-valuenow", "24")
        row.get_by_role("link").first.click()
        expect(shown.locator(".part.now")).to_contain_text("120 GB of 500 GB", timeout=WAIT_MS)
        wan.end_transfer("copy-9", "failed", problem="disk full")
    expect(shown.locator(".head")).to_contain_text("It failed: disk full.", timeout=WAIT_MS)
    assert shown.get_by_role("link", name="Ask what to do").count() == 0


def test_incidents_say_since_when_and_what_they_cost(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> None:
    db, now_s = copy_of_grid(tmp_path_factory), time.time()
    with served(db, environment=QUICK) as service:
        with RemoteWan(service.url) as wan:
            plan = wan.plan(CANADA, SAO_PAULO, volume_gb=20_000, time_value_usd_per_h=500)
            begin = partial(wan.begin_transfer, CANADA, SAO_PAULO, plan=plan, volume_gb=20_000)
            begin(id="hit-1", at_s=now_s - 1800)
            wan.report_transfer("hit-1", 0.5 * plan.throughput_gbps / 8 * 1800, at_s=now_s)
            took_s = 1.1 * (plan.duration_s - plan.vm_start_s)
            begin(id="done-1", at_s=now_s - took_s - 9)
            wan.end_transfer("done-1", at_s=now_s - 9)
        hit, other = ((path.regions[0], path.regions[1]) for path in plan.paths[:2])
        with open_store(db, mode="write") as store, store.database.transaction():
            lossy = LinkHealth("degraded", since_s=now_s - 900, reason="it loses packets")
            LinkStates(store.database).keep({hit: lossy}, (), now_s + 3600)
            for pair, before, after in ((other, "up", "down"), (other, "down", "up")):
                detail = {"from": before, "to": after, "reason": "no reply"}
                Events(store.database).add("leg", ">".join(pair), detail)
        eventually(lambda: service.get("/v1/overview").json["leg_states"])
        found = service.get("/v1/incidents").json
        now, before_it = found["incidents"]
        assert (now["condition"], now["is_over"]) == ("degraded", False)
        assert (now["health"], before_it["health"]) == ("bad", "good")
        assert now["since_s"] == pytest.approx(now_s - 900, abs=1)
        assert (before_it["condition"], before_it["is_over"]) == ("down", True)
        assert now["transfers"] == before_it["transfers"] == ["hit-1"]
        (transfer,) = found["transfers"]
        # The rest as `replan` has it, VMs so far by the plan's prices, and egress as planned.
        rest = service.get("/v1/transfers/hit-1").json["details"]["rest"]["body"]
        advice = service.ask("POST", "/v1/replans", rest).json
        keep = advice["keep"]
        kept = transfer["kept"]
        assert kept["extra_s"] == pytest.approx(kept["end_s"] - transfer["planned_end_s"])
        assert kept["end_s"] == pytest.approx(now_s + keep["duration_s"], abs=1)
        vm_usd = plan.cost_usd.vm * (plan.vm_start_s + 1800) / plan.duration_s
        more_usd = vm_usd + keep["cost_usd"]["vm"] - plan.cost_usd.vm
        assert kept["extra_usd"] == pytest.approx(more_usd, abs=0.01)
        assert found["saved"]["transfers"] == 1
        saved_s = (plan.direct.duration_s or 0.0) - plan.vm_start_s - took_s
        assert found["saved"]["saved_s"] == pytest.approx(saved_s, abs=1)

        with watched(browser) as seen:
            shown = seen.open(f"{service.url}/now")
            wrong = shown.locator(".part.wrong")
            expect(wrong).to_contain_text("1 link is down or degraded", timeout=WAIT_MS)
            links = wrong.locator("table.incidents tbody tr")
            expect(links).to_have_count(2)
            for text in (" → ".join(hit), "it loses packets", "15 min ago", "it lasts", "hit-1"):
                expect(links.first).to_contain_text(text)
            row = wrong.locator("tr[data-key=hit-1]")
            expect(row).to_contain_text(f"+${more_usd:,.2f}")
            expect(shown.locator("a.tile", has_text="Saved by relays")).to_contain_text(
                "1 finished"
            )
            assert seen.violations() == []
            row.get_by_role("link").first.click()
            expect(shown.locator(".part.now")).to_contain_text(f"+${more_usd:,.2f}")
            # The transfer's id stands for its plan, in the address and in the command.
            shown.get_by_role("link", name="Ask what to do with the rest").click()
            expect(shown.locator("#answer")).to_contain_text("after 30 min", timeout=WAIT_MS)
            assert query_of(shown)["transfer"] == ["hit-1"]
            assert len(shown.url) < 300
            done = ran(shown.locator(".copy pre").first.inner_text(), db, tmp_path)
            assert f"{advice['verdict'].capitalize()} t" in done
            assert seen.problems == []


def test_what_transfers_of_a_month_saved_is_answered_by_the_address(
    tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> None:
    db, today = copy_of_grid(tmp_path_factory), datetime.now(UTC)
    before = (today.replace(day=1) - timedelta(days=10)).replace(hour=12)
    with served(db, environment=QUICK) as service, RemoteWan(service.url) as wan:
        plan = wan.plan(CANADA, SAO_PAULO, volume_gb=20_000, time_value_usd_per_h=500)
        took_s = plan.duration_s - plan.vm_start_s
        # Those that began to be reported first ended last.
        ends_s = [before.timestamp() - 3600 * at for at in range(7)]
        for at, end_s in enumerate(ends_s):
            of = {"plan": plan, "volume_gb": 20_000, "no_hold": True, "at_s": end_s - took_s}
            wan.begin_transfer(CANADA, SAO_PAULO, id=f"old-{at}", **of)
            wan.end_transfer(f"old-{at}", at_s=end_s)
        wan.begin_transfer(CANADA, SAO_PAULO, id="new-1", volume_gb=9)
        wan.end_transfer("new-1", "cancelled")
        names = ["new-1", *(f"old-{at}" for at in range(7))]
        (saved_s,) = {round(one.saved_s or 0.0, 3) for one in wan.transfers("finished")}
        direct_s = plan.direct.duration_s or 0.0
        assert saved_s == pytest.approx(direct_s - plan.duration_s, abs=0.01)
        with watched(browser) as seen:
            shown = seen.open(f"{service.url}/now")
            rows = shown.locator("table.ended tbody tr")
            expect(rows).to_contain_text(names[:5], timeout=WAIT_MS)
            shown.get_by_role("button", name="Show older ones").click()
            expect(rows).to_contain_text(names, timeout=WAIT_MS)
            row = rows.last.locator("td").last
            expect(row).to_have_text(re.compile(r"^\d+ h( \d+ min)?\$[\d,.]+ (more|less) spent$"))
            shown.get_by_label("Month").select_option(f"{before:%Y-%m}")
            expect(rows).to_contain_text(names[1:6], timeout=WAIT_MS)
            shown.reload()
            assert query_of(shown) == {"month": [f"{before:%Y-%m}"]}
            expect(rows).to_contain_text(names[1:6], timeout=WAIT_MS)
            tile = shown.locator("a.tile", has_text=f"Saved by relays, {before:%Y-%m}")
            expect(tile).to_contain_text("7 finished transfers")
            holds_at_all_widths(seen)
            shown.get_by_label("Month").select_option(f"{today:%Y-%m}")
            expect(rows).to_contain_text(["new-1"], timeout=WAIT_MS)
            this = shown.locator("a.tile", has_text=f"Saved by relays, {today:%Y-%m}")
            expect(this).to_contain_text("No transfer through a relay")


def test_trouble_stays_listed_while_a_transfer_is_silent_or_lost_its_hold(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> None:
    file = tmp_path / "pools.toml"
    file.write_text(f'[[pool]]\nregion = "{CANADA}"\nvm_type = "azure:D32_v5"\nvms = 2\n')
    db, now_s = copy_of_grid(tmp_path_factory), time.time()
    with served(db, f"--catalogue={file}", environment=QUICK) as service:
        with RemoteWan(service.url) as wan:
            plan = wan.plan(CANADA, SAO_PAULO, volume_gb=20_000, relays="none", vms=2)
            (pool,) = wan.pools()
            most_gbps = 0.6 * (pool.held.egress_gbps_left or 0.0)  # there is room for one
            whole = {"regions": [CANADA, SAO_PAULO], "throughput_gbps": most_gbps, "share": 1.0}
            taken = {**plan.model_dump("json"), "paths": [whole]}
            begin = partial(wan.begin_transfer, CANADA, SAO_PAULO, plan=taken, volume_gb=20_000)
            sent_gb = plan.throughput_gbps / 8 * 1800
            # As planned, then silent for longer than a hold lasts; a second one takes its place.
            begin(id="lost-1", at_s=now_s - 1800, silent_after_s=1)
            wan.report_transfer("lost-1", 0.98 * sent_gb, at_s=now_s - 2)
            eventually(lambda: wan.transfers("in-flight")[0].state == "silent")
            begin(id="held-1", at_s=now_s - 1800)
            wan.report_transfer("held-1", sent_gb, at_s=now_s)
            wan.report_transfer("lost-1", sent_gb, at_s=now_s)
            # Slow, then silent; and one that was as planned, and has no time left for the rest.
            slow = {"deadline_s": "3d", "silent_after_s": 1, "no_hold": True}
            begin(id="slow-1", at_s=now_s - 1800, **slow)
            wan.report_transfer("slow-1", 0.15 * sent_gb, at_s=now_s)
            begin(id="short-1", at_s=now_s - 1800, **slow | {"deadline_s": "40min"})
            wan.begin_transfer(CANADA, SAO_PAULO, id="fine-1", volume_gb=9, silent_after_s=1)
            of = {one.id: one for one in wan.transfers("in-flight")}
            assert (of["slow-1"].state, of["slow-1"].is_slow) == ("running", True)
            known = {one["id"]: one for one in service.get("/v1/incidents").json["transfers"]}
            eventually(
                lambda: [one.state for one in wan.transfers("in-flight")].count("silent") == 4
            )
        found = {one["id"]: one for one in service.get("/v1/incidents").json["transfers"]}
        assert {name: one["hold"] for name, one in found.items()} == {
            "lost-1": "lost",
            "slow-1": "none",
            "short-1": "none",
        }
        assert found["short-1"]["is_late"]
        # What was known last stands.
        assert found["slow-1"]["is_slow"]
        assert found["slow-1"]["kept"] == known["slow-1"]["kept"]
        with watched(browser) as seen:
            shown = seen.open(f"{service.url}/now")
            wrong = shown.locator(".part.wrong")
            expect(wrong).to_contain_text("3 transfers are touched", timeout=WAIT_MS)
            expect(wrong).to_contain_text("1 other is silent")
            row = wrong.locator("tr[data-key=slow-1]")
            for text in ("silent", "slow", "last known", "as known last", "+$"):
                expect(row).to_contain_text(text)
            expect(wrong.locator("tr[data-key=lost-1]")).to_contain_text("hold lost")
            expect(shown.locator("table.pools")).to_contain_text("held-1")
            holds_at_all_widths(seen)

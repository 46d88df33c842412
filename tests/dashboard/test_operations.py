"""What operators do on pages: stop a campaign, decide about samples, look through tokens."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from probes.samples import QuarantinedSample, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.decisions import QuarantineFilter, quarantined
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.tokens import Tokens
from tests.dashboard.browser import WAIT_MS, holds_at_all_widths, settle, text_of, watched
from tests.dashboard.conftest import QUICK
from tests.http.running import Served, fleet_at_port, served
from tests.waiting import eventually

US, SA = "aws:us-east-1", "aws:sa-east-1"
EFFECTS = "**/v1/samples/decisions/effects"


def doubtful_store(folder: Path) -> Path:
    """Return a store with samples in quarantine, and some that contradict the own prober's."""
    now_s = time.time() - 3600

    def rtt(value: float, at: int) -> Sample:
        return Sample(US, SA, "rtt_ms", value, now_s - at, "ping")

    db = folder / "relayd.db"
    with open_store(db, mode="create") as store:
        append(store, [rtt(115.0 + at / 10, at) for at in range(5)])
        sender = Batch("service", "live", reporter="ci", address="192.0.2.7")
        false = [rtt(300.0 + at, 100 + at) for at in range(5)]
        apart = [
            QuarantinedSample(rtt(1.0, at), "1 ms is faster than light") for at in range(10, 30)
        ]
        ingest(store, sender, [*false, *apart])
        make_snapshot(store, load_catalogue())
    return db


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that needs tokens, with hosts that never answer."""
    folder = tmp_path_factory.mktemp("guarded")
    db = doubtful_store(folder)
    with open_store(db, mode="write") as store:
        tokens = Tokens(store.database)
        tokens.create("reader", ["read"], secret="reader-secret")
        tokens.create("ana", ["admin"], secret="ana-secret", requests_per_s=20, max_series=500)
        tokens.create("soon", ["plan"], expires_at_s=time.time() + 86400)
        tokens.revoke(3)
        tokens.create("prober", ["read", "probe"], secret="prober-secret")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # logins wait for its greeting
        fleet = fleet_at_port(folder, silent.getsockname()[1])
        with served(db, "--fleet", str(fleet), environment=QUICK, auth=True) as service:
            yield service


def without_effects(route: Route) -> None:
    """Answer as a service to which estimating twice takes too long."""
    told = route.fetch().json()
    problem = {"kind": "timeout", "detail": "The decision can be made all the same."}
    kept = {name: told[name] for name in ("samples", "through")}
    route.fulfill(status=503, json=problem | kept, content_type="application/problem+json")


@pytest.mark.thorough
def test_samples_are_accepted_and_rejected_after_seeing_what_that_changes(
    tmp_path: Path, browser: Browser
) -> None:
    db = doubtful_store(tmp_path)
    with (
        served(db, environment=QUICK) as service,
        watched(browser, allowed=("ERR_CONNECTION_REFUSED", "status of 503")) as seen,
    ):
        # From the pair to what is in doubt of it.
        page = seen.open(f"{service.url}/?src={US}&dst={SA}#open=pair")
        doubts = page.locator(".pair-doubts")
        said = doubts.inner_text()
        assert "5 samples of token ci contradict the round-trip time" in said
        assert "20 samples of this pair can't be a measurement" in said
        assert seen.violations() == []
        doubts.get_by_role("link").click()
        page.wait_for_url("**/quarantine?*")
        page.get_by_role("button", name="Select all shown").click()
        page.get_by_role("button", name="Accept …", exact=True).click()
        page.locator("table.effects").wait_for()
        holds_at_all_widths(seen)
        # What is in dispute is decided by its source.
        disputed = page.locator(".disputes .panel")
        disputed.get_by_role("button", name="Reject what token ci reported …").click()
        page.get_by_text("They count no longer").wait_for()
        assert seen.violations() == []
        page.get_by_role("button", name="Reject what token ci reported", exact=True).click()
        page.get_by_text("5 samples rejected.").wait_for()
        eventually(lambda: not service.get("/v1/quarantine").json["disputed"])

        page = seen.open(f"{service.url}/quarantine")
        rows = page.locator("table.quarantine tbody tr")
        assert rows.count() == 20
        # All of it by keyboard.
        page.get_by_role("button", name="Select all shown").focus()
        page.keyboard.press("Enter")
        page.get_by_text("20 selected").wait_for()
        for at, left in ((1, 19), (2, 18)):
            page.get_by_role("checkbox").nth(at).focus()
            page.keyboard.press("Space")
            page.get_by_text(f"{left} selected").wait_for()
        page.get_by_label("Because").fill("a tunnel")
        page.get_by_role("button", name="Accept …", exact=True).focus()
        page.keyboard.press("Enter")
        effects = page.locator("table.effects")
        effects.wait_for()
        assert f"{US} → {SA}" in effects.inner_text()
        assert "Round-trip time" in effects.inner_text()
        assert page.evaluate("document.activeElement.className") == "consent"
        page.keyboard.press("Enter")  # a second one by mistake changes nothing
        with open_store(db, mode="read") as store:
            assert len(quarantined(store.database, limit=99)) == 20
        page.get_by_role("button", name="Accept", exact=True).focus()
        page.keyboard.press("Enter")
        page.get_by_text("18 samples accepted.").wait_for()
        assert rows.count() == 2
        # Where seeing what that changes takes too long, it is decided all the same.
        assert seen.problems == []
        page.route(EFFECTS, without_effects)
        page.get_by_role("checkbox").first.check()
        page.get_by_label("Because").fill("a tunnel")
        page.get_by_role("button", name="Accept …", exact=True).click()
        page.get_by_text("The decision can be made all the same.").wait_for()
        assert text_of(page, ".consent").startswith("1 sample.")
        page.get_by_role("button", name="Accept", exact=True).click()
        page.get_by_text("1 sample accepted.").wait_for()
        page.unroute(EFFECTS)
        assert rows.count() == 1
        page.get_by_role("button", name="Select all shown").click()
        page.get_by_role("button", name="Reject …", exact=True).click()
        page.get_by_text("They stay here for good").wait_for()
        page.get_by_role("button", name="Reject", exact=True).click()
        page.get_by_text("Nothing is in quarantine").wait_for()
        page.get_by_label("Show").select_option("accepted")
        page.get_by_text("accepted by anybody").first.wait_for()
        assert page.get_by_text(": a tunnel").count() == 19
        assert page.get_by_role("checkbox").count() == 0
        page.reload()
        page.get_by_text("accepted by anybody").first.wait_for()
        # A service that has gone is said, and nothing is lost of what was chosen.
        page.get_by_label("Show").select_option("rejected")
        page.get_by_role("checkbox").check()
        service.stop()
        page.get_by_role("button", name="Accept …", exact=True).click()
        page.get_by_text("The service does not answer.").wait_for()
        assert page.get_by_role("checkbox").is_checked()
    with open_store(db, mode="read") as store:
        accepted = quarantined(store.database, QuarantineFilter("accepted"), limit=99)
    assert {row.decided_because for row in accepted} == {"a tunnel"}


def test_tokens_without_secrets_and_what_each_may(guarded: Served, browser: Browser) -> None:
    with watched(browser) as seen:
        page = seen.open(f"{guarded.url}/tokens#token=ana-secret")
        rows = page.locator("table.tokens tbody tr")
        rows.first.wait_for()
        texts = [" ".join(text.split()) for text in rows.all_inner_texts()]
        assert [text.split()[1] for text in texts] == ["reader", "ana", "prober", "soon"]
        assert "0 of 500" in texts[1]
        assert "revoked" in texts[3]  # those that may nothing any more come last
        assert "ana-secret" not in page.content()
        holds_at_all_widths(seen)
    # What a token does not allow is not offered, and the scope is named.
    with watched(browser, allowed=("status of 403",)) as seen:
        page = seen.open(f"{guarded.url}/tokens#token=reader-secret")
        page.get_by_text("needs a token with the scope admin").wait_for()
        page = seen.open(f"{guarded.url}/quarantine")
        settle(page)
        assert page.get_by_role("checkbox").count() == 0
        assert page.get_by_role("button", name="Accept").count() == 0
        assert page.get_by_text("needs a token with the scope admin").count() == 2
        assert seen.problems == []


def test_a_campaign_is_started_and_stopped_by_those_who_may_measure(
    guarded: Served, browser: Browser
) -> None:
    with watched(browser) as seen:
        seen.page.clock.install()
        seen.page.goto(f"{guarded.url}/campaigns")
        seen.page.get_by_label("Token", exact=True).wait_for()
        seen.page.clock.fast_forward(30_000)
        seen.page.wait_for_timeout(300)
        assert text_of(seen.page, "#message") == ""  # nothing is asked for again and again
    started = guarded.ask(
        "POST",
        "/v1/campaigns",
        {"budget_usd": 1.0, "phases": ["rtt"]},
        {"Authorization": "Bearer prober-secret"},
    )
    assert started.status == 202, started.content
    with watched(browser) as seen:
        page = seen.open(f"{guarded.url}/campaigns?id=1#token=reader-secret")
        page.get_by_text("Stopping a campaign needs a token with the scope probe").wait_for()
        assert page.get_by_role("button", name="Stop").count() == 0
    with watched(browser, width=390) as seen:
        page = seen.open(f"{guarded.url}/campaigns?id=1#token=prober-secret")
        page.get_by_role("button", name="Stop this campaign").click()
        assert seen.violations() == []
        page.get_by_role("button", name="Leave it").click()
        page.get_by_role("button", name="Stop this campaign").click()
        page.get_by_role("button", name="Stop it now").click()
        page.locator("h2 .tag").get_by_text("interrupted", exact=True).wait_for(timeout=WAIT_MS)
        assert page.get_by_role("button", name="Stop this campaign").count() == 0
        page.get_by_text("Go on with it").wait_for()
        for token, may in (("prober", True), ("reader", False)):
            page.goto("about:blank")
            page = seen.open(f"{guarded.url}/campaigns#token={token}-secret")
            page.wait_for_selector("tr[data-key='1']")
            assert page.get_by_text("Start a campaign", exact=True).count() == may
            assert page.get_by_text("token with the scope").count() == (not may)

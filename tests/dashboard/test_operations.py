"""What operators do on pages: stop a campaign, decide about samples, look through tokens."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from probes.samples import QuarantinedSample, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.decisions import QuarantineFilter, quarantined
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.tokens import Tokens
from tests.dashboard.browser import WAIT_MS, Watched, settle, watched
from tests.dashboard.conftest import QUICK
from tests.http.running import Served, eventually, served, with_limit

US, SA, WEST = "aws:us-east-1", "aws:sa-east-1", "aws:us-west-2"
SIZES = [(1440, False), (1024, True), (390, False)]


@pytest.fixture
def doubtful(tmp_path: Path) -> Path:
    """A store with samples in quarantine, and some that contradict the own prober's."""
    now_s = time.time() - 3600

    def rtt(value: float, at: int, dst: str = SA) -> Sample:
        return Sample(US, dst, "rtt_ms", value, now_s - at, "ping")

    db = tmp_path / "relayd.db"
    with open_store(db, mode="create") as store:
        append(store, [rtt(115.0 + at / 10, at) for at in range(5)])
        sender = Batch("service", "live", reporter="ci", address="192.0.2.7")
        false = [rtt(300.0 + at, 100 + at) for at in range(5)]
        apart = [
            QuarantinedSample(rtt(1.0, at), "1 ms is faster than light") for at in range(10, 30)
        ]
        ingest(store, sender, [*false, *apart])
        make_snapshot(store, load_catalogue())
        tokens = Tokens(store.database)
        tokens.create("reader", ["read"], secret="reader-secret")
        tokens.create("ana", ["admin"], secret="ana-secret", requests_per_s=20, max_series=500)
        tokens.create("soon", ["plan"], expires_at_s=time.time() + 86400)
        tokens.revoke(3)
    return db


def fits(seen: Watched) -> bool:
    """Whether nothing is wider than the window, but what scrolls by itself."""
    return bool(
        seen.page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
    )


def test_samples_are_accepted_and_rejected_after_seeing_what_that_changes(
    doubtful: Path, browser: Browser
) -> None:
    with served(doubtful, environment=QUICK) as service:
        for width, dark in SIZES:
            with watched(browser, width=width, dark=dark) as seen:
                page = seen.open(f"{service.url}/quarantine")
                page.get_by_role("button", name="Select all shown").click()
                page.get_by_role("button", name="Accept …", exact=True).click()
                page.locator("table.effects").wait_for()
                assert seen.violations() == []
                assert fits(seen)
        with watched(browser, allowed=("ERR_CONNECTION_REFUSED",)) as seen:
            page = seen.open(f"{service.url}/quarantine")
            assert page.locator("table.quarantine tbody tr").count() == 20
            # All of it by keyboard.
            page.get_by_role("button", name="Select all shown").focus()
            page.keyboard.press("Enter")
            page.get_by_text("20 selected").wait_for()
            page.get_by_role("checkbox").nth(1).focus()
            page.keyboard.press("Space")
            page.get_by_text("19 selected").wait_for()
            page.get_by_label("Because").fill("a tunnel")
            page.get_by_role("button", name="Accept …", exact=True).focus()
            page.keyboard.press("Enter")
            effects = page.locator("table.effects")
            effects.wait_for()
            assert f"{US} → {SA}" in effects.inner_text()
            assert "Round-trip time" in effects.inner_text()
            assert page.evaluate("document.activeElement.className") == "consent"
            page.keyboard.press("Enter")  # a second one by mistake changes nothing
            with open_store(doubtful, mode="read") as store:
                assert len(quarantined(store.database, limit=99)) == 20
            page.get_by_role("button", name="Accept", exact=True).focus()
            page.keyboard.press("Enter")
            page.get_by_text("19 samples accepted.").wait_for()
            assert page.locator("table.quarantine tbody tr").count() == 1
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
        with open_store(doubtful, mode="read") as store:
            accepted = quarantined(store.database, QuarantineFilter("accepted"), limit=99)
        assert {row.decided_because for row in accepted} == {"a tunnel"}


def test_samples_are_accepted_where_seeing_what_that_changes_takes_too_long(
    doubtful: Path, browser: Browser
) -> None:
    quick = with_limit("relayd.http.routes.samples", "EFFECTS_LIMIT_S", 0.001)
    with (
        served(doubtful, environment=QUICK, within=quick) as service,
        watched(browser, allowed=("status of 503",)) as seen,
    ):
        page = seen.open(f"{service.url}/quarantine")
        page.get_by_role("button", name="Select all shown").click()
        page.get_by_role("button", name="Accept …", exact=True).click()
        page.get_by_text("The decision can be made all the same.").wait_for()
        assert page.get_by_text("20 samples.").is_visible()
        page.get_by_role("button", name="Accept", exact=True).click()
        page.get_by_text("20 samples accepted.").wait_for()


def test_what_is_in_dispute_is_decided_by_its_source(doubtful: Path, browser: Browser) -> None:
    with served(doubtful, environment=QUICK) as service:
        with watched(browser) as seen:
            page = seen.open(f"{service.url}/?src={US}&dst={SA}#open=pair")
            doubts = page.locator(".pair-doubts")
            said = doubts.inner_text()
            assert "5 samples of token ci contradict the round-trip time" in said
            assert "20 samples of this pair can't be a measurement" in said
            assert seen.violations() == []
            doubts.get_by_role("link").click()
            page.wait_for_url("**/quarantine?*")
            disputed = page.locator(".disputes .panel")
            disputed.get_by_role("button", name="Reject what token ci reported …").click()
            page.get_by_text("They count no longer").wait_for()
            assert seen.violations() == []
            page.get_by_role("button", name="Reject what token ci reported", exact=True).click()
            page.get_by_text("5 samples rejected.").wait_for()
        eventually(lambda: not service.get("/v1/quarantine").json["disputed"])


def test_tokens_without_secrets_and_what_each_may(doubtful: Path, browser: Browser) -> None:
    with served(doubtful, environment=QUICK, auth=True) as service:
        for width, dark in SIZES:
            with watched(browser, width=width, dark=dark) as seen:
                page = seen.open(f"{service.url}/tokens#token=ana-secret")
                rows = page.locator("table.tokens tbody tr")
                rows.first.wait_for()
                texts = [" ".join(text.split()) for text in rows.all_inner_texts()]
                assert [text.split()[1] for text in texts] == ["reader", "ana", "soon"]
                assert "0 of 500" in texts[1]
                assert "revoked" in texts[2]
                assert "ana-secret" not in page.content()
                assert seen.violations() == []
                assert fits(seen)
        # What a token does not allow is not offered, and the scope is named.
        with watched(browser, allowed=("status of 403",)) as seen:
            page = seen.open(f"{service.url}/tokens#token=reader-secret")
            page.get_by_text("needs a token with the scope admin").wait_for()
            page = seen.open(f"{service.url}/quarantine")
            settle(page)
            assert page.get_by_role("checkbox").count() == 0
            assert page.get_by_role("button", name="Accept").count() == 0
            assert page.get_by_text("needs a token with the scope admin").count() == 2
            assert seen.problems == []


def test_a_running_campaign_is_stopped_from_its_page(tmp_path: Path, browser: Browser) -> None:
    db = tmp_path / "relayd.db"
    (tmp_path / "known").touch()
    fleet = tmp_path / "fleet.toml"
    with socket.create_server(("127.0.0.1", 0)) as silent:  # logins wait for its greeting
        port = silent.getsockname()[1]
        fleet.write_text(
            "".join(
                f'[[host]]\nregion = "{region}"\nhost = "127.0.0.{n}"\nport = {port}\n'
                f'public_address = "127.0.0.{n}"\nuser = "nobody"\nknown_hosts = "known"\n\n'
                for n, region in enumerate((US, SA), 1)
            )
        )
        with open_store(db, mode="create") as store:
            for name, scopes in (("reader", ["read"]), ("prober", ["read", "probe"])):
                Tokens(store.database).create(name, scopes, secret=name)
        with served(db, "--fleet", str(fleet), environment=QUICK, auth=True) as service:
            started = service.ask(
                "POST",
                "/v1/campaigns",
                {"budget_usd": 1.0, "phases": ["rtt"]},
                {"Authorization": "Bearer prober"},
            )
            assert started.status == 202, started.content
            stop(service, browser)


def stop(service: Served, browser: Browser) -> None:
    with watched(browser) as seen:
        page = seen.open(f"{service.url}/campaigns?id=1#token=reader")
        page.get_by_text("Stopping a campaign needs a token with the scope probe").wait_for()
        assert page.get_by_role("button", name="Stop").count() == 0
    with watched(browser, width=390) as seen:
        page = seen.open(f"{service.url}/campaigns?id=1#token=prober")
        page.get_by_role("button", name="Stop this campaign").click()
        assert seen.violations() == []
        page.get_by_role("button", name="Leave it").click()
        page.get_by_role("button", name="Stop this campaign").click()
        page.get_by_role("button", name="Stop it now").click()
        page.locator("h2 .tag").get_by_text("interrupted", exact=True).wait_for(timeout=WAIT_MS)
        assert page.get_by_role("button", name="Stop this campaign").count() == 0
        page.get_by_text("Go on with it").wait_for()

"""What a store calls things is shown as text on every page, whatever it is."""

from __future__ import annotations

import time
from itertools import permutations
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, expect

from probes.campaign.tasks import ProbeOutcome, ProbeTask
from probes.estimation.current_samples import LinkShift
from probes.liveness.link_health import LinkHealth
from probes.samples import QuarantinedSample, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.campaigns import Campaigns
from relayd.store.events import Events
from relayd.store.links import LevelShifts, LinkStates
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.tokens import Tokens
from tests.dashboard.browser import watched
from tests.dashboard.conftest import QUICK
from tests.http.running import served

HTML = "aws:<img src=x onerror=window.ran=1>"
TURNED = "azure:\u202eus-east\u0007"
LONG = "gcp:" + "w" * 196
EMOJI = "acme:\U0001f469\u200d\U0001f4bb'\"&amp;"
US, SA = "aws:us-east-1", "aws:sa-east-1"
REGIONS = (HTML, TURNED, LONG, EMOJI, US, SA)
SHOWN = {
    HTML: HTML,
    TURNED: "azure:\\u202eus-east\\u0007",
    LONG: LONG,
    EMOJI: "acme:\U0001f469\\u200d\U0001f4bb'\"&amp;",
}
"""Names as pages show them: what is not seen is written as an escape."""
SCRIPT = "</script><script>window.ran=1</script>\u202e"


def hostile_store(folder: Path) -> Path:
    """Return a store in which everything that has a name has a hostile one."""
    db, now_s = folder / "relayd.db", time.time()
    rates = [
        Sample(src, dst, "aggregate_mbps", 4000.0, now_s - 60, SCRIPT, 64, 60.0, True)
        for src, dst in permutations(REGIONS, 2)
    ]
    apart = [
        QuarantinedSample(Sample(name, US, "rtt_ms", 0.001, now_s, SCRIPT, src_vm=SCRIPT), reason)
        for name, reason in zip(
            REGIONS, ("faster than light", "network card " + SCRIPT) * 3, strict=True
        )
    ]
    of_one_link = rates[0]
    own = [of_one_link._replace(value=400.0 + n, tool="iperf3") for n in range(3)]
    false = [of_one_link._replace(value=4001.0 + n) for n in range(3)]
    with open_store(db, mode="create") as store:
        append(store, own)
        sent: list[Sample | QuarantinedSample] = [*rates, *false, *apart]
        ingest(store, Batch(SCRIPT, "live", reporter=HTML, address=SCRIPT), sent)
        spec = {"phases": ["rtt", SCRIPT], "pairs": [[HTML, TURNED]]}
        campaign = Campaigns(store).begin({"wish": spec, "budget_usd": 2.0, "started_by": SCRIPT})
        pings = campaign.plan(
            "rtt", [ProbeTask("rtt", ((HTML, other),), 0, 2.0) for other in REGIONS[1:4]]
        )
        campaign.record(
            [ProbeOutcome(probe, problem=SCRIPT, host=HTML, attempts=3) for probe in pings]
        )
        make_snapshot(store, load_catalogue())
        Tokens(store.database).create(HTML, ["read"])
        with store.database.transaction():
            LevelShifts(store.database).add(
                LinkShift(HTML, TURNED, "aggregate_mbps", now_s - 60, now_s, 4e3, 1e3)
            )
            LinkStates(store.database).keep(
                {
                    (HTML, LONG): LinkHealth("down", since_s=now_s - 900, reason=SCRIPT),
                    (TURNED, EMOJI): LinkHealth("down", since_s=now_s - 900, reason=SCRIPT),
                },
                (),
                now_s + 86400,
            )
            detail = {"from": "up", "to": "down", "reason": SCRIPT}
            Events(store.database).add("leg", f"{TURNED}>{LONG}", detail)
    return db


def test_hostile_names_are_text_on_every_page(browser: Browser, tmp_path: Path) -> None:
    pair = urlencode({"src": HTML, "dst": TURNED})
    names = [*SHOWN.values()]
    expected = {
        "/now": [SHOWN[TURNED], SHOWN[LONG], "\\u202e"],
        "/matrix?measured=1": [name.partition(":")[2] for name in names],
        f"/matrix?{urlencode({'from': HTML, 'metric': SCRIPT})}": [],
        f"/map?{pair}": [],
        f"/?{pair}&volume_gb=500": [SHOWN[HTML], SHOWN[TURNED]],
        f"/?{urlencode({'src': SCRIPT, 'dst': LONG})}": [],
        f"/pair?{pair}": [SHOWN[HTML], SHOWN[TURNED]],
        f"/pair?{urlencode({'src': LONG, 'dst': EMOJI})}": [SHOWN[LONG], SHOWN[EMOJI]],
        "/campaigns": [],
        "/campaigns?id=1": [SHOWN[HTML], "</script><script>window.ran=1</script>\\u202e"],
        f"/campaigns?{urlencode({'id': SCRIPT})}": [],
        "/fleet": [SHOWN[HTML], SHOWN[TURNED], SHOWN[EMOJI]],
        "/quarantine": [*names, f"token {HTML}", "\\u202e"],
        f"/quarantine?{pair}": [SHOWN[HTML], SHOWN[TURNED]],
        "/tokens": [HTML],
    }
    db = hostile_store(tmp_path)
    # The browser itself says in the console what was refused.
    with (
        served(db, environment=QUICK) as service,
        watched(browser, allowed=("status of 4",)) as seen,
    ):
        for address, texts in expected.items():
            shown = seen.open(f"{service.url}{address}")
            text = shown.locator("body").inner_text()
            missing = [each for each in texts if each not in text]
            assert missing == [], address
            assert not set("\u202e\u0007") & set(text), address
            assert shown.evaluate("window.ran") is None, address
            assert shown.locator("img[src=x]").count() == 0, address
            assert seen.fits(), address
        # Chosen by kind, the reader sees what there is of it.
        shown = seen.open(f"{service.url}/quarantine")
        disputed = shown.locator(".disputes .panel").all_inner_texts()
        assert len(disputed) == 1
        for text in (SHOWN[HTML], SHOWN[TURNED], "4 samples of token", "contradict"):
            assert text in disputed[0]
        assert shown.locator("table.quarantine tbody tr").count() == len(REGIONS)
        # What a decision would do names them, too.
        shown.get_by_role("button", name="Reject what token").click()
        shown.locator("table.effects, .consent p").first.wait_for()
        assert shown.evaluate("window.ran") is None
        shown.get_by_role("button", name="Leave it").click()
        shown.get_by_label("Reason").select_option("faster than light")
        expect(shown.locator("table.quarantine tbody tr")).to_have_count(3)
        assert shown.url.endswith("/quarantine?reason=faster+than+light")
        assert seen.violations() == []
        # The same by pages of the API.
        first = service.get("/v1/quarantine?limit=4").json
        rest = service.get(f"/v1/quarantine?limit=4&cursor={first['next_cursor']}").json
        assert [each["src"] for each in (*first["samples"], *rest["samples"])] == [*REGIONS[::-1]]
        assert rest["next_cursor"] is None
        assert {each["reason"]: each["samples"] for each in first["reasons"]} == {
            "faster than light": 3,
            "network card": 3,
        }
        wrong = service.get("/v1/quarantine?reason=none")
        assert (wrong.status, wrong.json["field"]) == (422, "reason")

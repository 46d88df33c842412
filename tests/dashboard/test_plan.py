"""The plan page asks what it says, shows what was answered, and says the same elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from planner.fields.specified import fields_of
from planner.transfer.request import TransferRequest
from tests.dashboard.browser import Watched, query_of, ran, watched
from tests.http.running import Served

PAIR = {"src": "azure:eastus", "dst": "aws:sa-east-1"}
ANSWER = "#verdict"


def plan_of(service: Served, **asked: Any) -> Any:
    return service.get("/v1/plans?" + urlencode({**PAIR, "frontier": "true", **asked}, True)).json


def answered(page: Page, plan: Any) -> None:
    """Wait until the page shows this plan."""
    page.get_by_text(plan["plan_id"]).wait_for(state="attached")


def test_the_form_has_every_option_of_the_api_and_tools_to_fill_it_in(
    page: Watched, grid: Served
) -> None:
    page.page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    shown = page.open(f"{grid.url}/")
    shown.locator("form.plan-form").wait_for()
    for field in fields_of(TransferRequest).values():
        assert shown.locator(f"[name={field.key}]").count() == 1
        described = shown.locator(f"#option-{field.key}-help")
        assert described.text_content() == field.help.replace("`", "")
    regions = grid.get("/v1/regions").json
    names = shown.locator("#names option").evaluate_all("all => all.map(each => each.value)")
    assert set(names) == {region["id"] for region in regions["regions"]} | set(regions["aliases"])
    # Help opens at its field.
    volume = shown.locator(".field", has=shown.locator("[name=volume_gb]"))
    assert not volume.locator(".help small").is_visible()
    volume.locator(".help summary").click()
    assert volume.locator(".help small").is_visible()
    shown.goto(f"{grid.url}/?{urlencode(PAIR)}")
    shown.locator(ANSWER).wait_for()
    # Without a clipboard, the question is copied the old way.
    shown.get_by_label("Copy as").focus()
    shown.keyboard.press("ArrowDown")
    shown.get_by_role("button", name="Copy curl").click()
    shown.locator(".copied", has_text="copied").wait_for()
    assert "curl" in shown.evaluate("getSelection().toString()")


def test_the_address_is_the_request_and_back_works(page: Watched, grid: Served) -> None:
    shown = page.open(f"{grid.url}/")
    shown.get_by_role("combobox", name="From").fill(PAIR["src"])
    shown.get_by_role("combobox", name="To", exact=True).fill(PAIR["dst"])
    shown.get_by_label("Volume").fill("500")
    shown.get_by_label("Volume").press("Enter")
    first = plan_of(grid, volume_gb=500)
    answered(shown, first)
    assert query_of(shown) == {**{k: [v] for k, v in PAIR.items()}, "volume_gb": ["500"]}
    for text in (first["reason"], first["confidence"]):
        assert text in shown.locator(".verdict").inner_text()

    shown.get_by_label("An hour is worth").fill("inf")
    shown.get_by_text("More options").click()
    shown.get_by_label("Avoid").fill("provider:gcp, country:US")
    shown.get_by_label("VMs of one region").fill("azure:eastus=2")
    shown.get_by_role("button", name="Plan", exact=True).click()
    asked = {"volume_gb": 500, "time_value_usd_per_h": "inf", "frontier": True}
    rules = {"avoid": ["provider:gcp", "country:US"], "vms_in": {"azure:eastus": 2}}
    # The source is in the USA: what is forbidden binds the ends too.
    refused = grid.ask("POST", "/v1/plans", {**PAIR, **asked, **rules})
    assert refused.status == 422
    shown.locator("#option-src[aria-invalid]").wait_for()
    shown.get_by_label("Avoid").fill("provider:gcp")
    shown.get_by_role("button", name="Plan", exact=True).click()
    rules["avoid"] = ["provider:gcp"]
    second = grid.ask("POST", "/v1/plans", {**PAIR, **asked, **rules}).json
    answered(shown, second)
    assert query_of(shown)["vms_in"] == ["azure:eastus=2"]
    for path in second["paths"]:
        for relay in path["regions"][1:-1]:
            assert relay in shown.locator(ANSWER).inner_text()

    shown.reload()
    answered(shown, second)
    shown.go_back()
    shown.go_back()
    answered(shown, first)
    assert shown.get_by_label("An hour is worth").input_value() == ""
    shown.get_by_role("button", name="Swap").click()
    assert shown.get_by_role("combobox", name="From").input_value() == PAIR["dst"]

    # A time of day counts from now, where the browser is.
    later = shown.evaluate("new Date(Date.now() + 2 * 3600000).toTimeString().slice(0, 5)")
    shown.locator("#option-deadline_s").fill(later)
    with shown.expect_request("**/v1/plans?*") as sent:
        shown.get_by_role("button", name="Plan", exact=True).click()
    assert 7080 <= float(parse_qs(urlsplit(sent.value.url).query)["deadline_s"][0]) <= 7200
    page.problems[:] = [text for text in page.problems if "422" not in text]


WRONG = {
    "src": "us-eas",
    "volume_gb": "a lot",
    "avoid": "planet:mars",
    "vms_in": "aws:us-east-1=x",
    "vm_types": "aws=z9.huge",
}


def test_a_problem_is_said_at_its_field_and_what_would_be_feasible(
    browser: Browser, grid: Served
) -> None:
    with watched(browser, allowed=("422",)) as seen:
        for field, text in WRONG.items():
            shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, field: text})}")
            wrong = shown.locator("[aria-invalid]")
            assert wrong.get_attribute("name") == field
            assert wrong.is_visible()  # the further options were opened
            assert wrong.evaluate("it => it === document.activeElement")
            said = shown.locator(f"#option-{field}-problem").inner_text()
            if field == "vms_in":  # asked by a body, as the next
                assert "must be a whole number" in said
            elif field == "vm_types":
                assert "is not a VM type of aws" in said
            else:
                assert plan_of(grid, **{field: text})["problem"] in said
            assert shown.locator(ANSWER).count() == 0
        assert seen.violations() == []
        # What is not feasible says what would be; a field is called what the form calls it.
        shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'deadline_s': 1})}")
        label = fields_of(TransferRequest)["vms_running"].label
        detail = plan_of(grid, deadline_s=1)["detail"].replace("`vms_running`", f'"{label}"')
        assert "vms_running" not in detail
        assert detail in shown.locator(".no-plan").inner_text()
        assert seen.violations() == []
        # A link asks for what is feasible.
        shown.get_by_role("link", name="Ask with deadline").click()
        shown.locator(ANSWER).wait_for()
        assert (
            int(query_of(shown)["deadline_s"][0])
            == plan_of(grid, deadline_s=1)["change"]["deadline_s"]
        )


def test_all_that_is_wrong_is_said_at_once(browser: Browser, grid: Served) -> None:
    with watched(browser, allowed=("422",)) as seen:
        asked = {
            "src": "us-eas",
            "dst": "aws sao paolo",
            "volume_gb": "a lot",
            "deadline_s": "soon",
        }
        shown = seen.open(f"{grid.url}/?{urlencode({**asked, 'margin': '0.2'})}")
        wrong = shown.locator("[aria-invalid]").evaluate_all("all => all.map(it => it.name)")
        assert set(wrong) == set(asked)
        said = shown.locator("[role=status]", has_text="Volume").inner_text()
        for name in asked:
            assert shown.locator(f"#option-{name}-problem").inner_text().removeprefix("✕ ") in said
        assert seen.violations() == []
        # As people write them, a word of a region is enough; what is near is a click away.
        shown.get_by_label("Volume").fill("500")
        shown.get_by_label("Deadline").fill("")
        shown.get_by_role("combobox", name="From").fill("azure east us")
        shown.get_by_role("button", name="Plan", exact=True).click()
        shown.locator("#option-dst-chips .chip", has_text="aws:sa-east-1").click()
        shown.locator(".verdict", has_text="azure:eastus → aws:sa-east-1").wait_for()


def money(text: str) -> float:
    return float(text.split("$")[1].replace(",", ""))


def rows_of(page: Page) -> list[int]:
    """Return the places of the rows in the answer's offers, as they stand."""
    found = page.locator(".offers > li").evaluate_all("all => all.map(it => +it.dataset.offer)")
    return [int(at) for at in found]


def best_first(offers: Any, worth: float) -> list[int]:
    values = [one["cost_usd"]["total"] + worth * one["duration_s"] / 3600 for one in offers]
    return sorted(range(len(offers)), key=values.__getitem__)


def test_offers_are_rows_in_the_order_of_what_an_hour_is_worth(page: Watched, grid: Served) -> None:
    asked = {"src": "azure:canadacentral", "volume_gb": 500}
    plan = plan_of(grid, **asked)
    offers = plan["offers"]
    shown = page.open(f"{grid.url}/?{urlencode({**PAIR, **asked})}")
    answered(shown, plan)
    rows = shown.locator(".offers > li")
    assert rows_of(shown) == best_first(offers, 20)
    for row, at in zip(rows.all(), rows_of(shown), strict=True):
        text = " ".join(row.locator("summary").inner_text().split())
        assert f"${offers[at]['cost_usd']['total']:,.2f}" in text
        assert offers[at]["name"] in text
        assert offers[at]["why"] in text
        assert ("recommended" in text) == offers[at]["recommended"]
    # The slider puts rows in another order, and asks nothing.
    requests: list[str] = []
    shown.on("request", lambda request: requests.append(request.url))
    slider = shown.get_by_role("slider", name="Worth of an hour")
    assert slider.get_attribute("aria-valuetext") == "$20"
    slider.focus()
    rule = shown.locator(".offers > .recommended small")
    assert rule.inner_text() == offers[0]["why"]
    shown.keyboard.press("Home")
    assert rule.inner_text() == f"As asked: {offers[0]['why']}"
    assert slider.get_attribute("aria-valuetext") == "nothing: least cost"
    costs = [money(row.locator(".figure").nth(1).inner_text()) for row in rows.all()]
    assert costs == sorted(costs)
    shown.keyboard.press("End")
    assert [offers[at]["duration_s"] for at in rows_of(shown)] == sorted(
        one["duration_s"] for one in offers
    )
    assert not [url for url in requests if "/v1/" in url]
    shown.wait_for_url("**#worth=Infinity*")
    # A row opens in place: its limit, its links with their samples, and its command.
    at = next(i for i, one in enumerate(offers) if one["verdict"] == "relay")
    row = shown.locator(f".offers > [data-offer='{at}']")
    row.locator("summary").first.click()
    row.locator("table").wait_for()
    assert offers[at]["limit"] in row.inner_text()
    assert f"--relays {offers[at]['relays'][0]}" in row.get_by_label("Command").inner_text()
    links = row.locator("details.samples")
    assert links.count() == 2
    links.first.locator("summary").first.click()
    links.first.locator("details.evidence").first.wait_for()
    shown.reload()
    answered(shown, plan)
    assert rows_of(shown)[0] == best_first(offers, 1e12)[0]
    row.locator("table").wait_for()
    # The map and the chart follow it.
    links_of = [list(pair) for path in offers[at]["paths"] for pair in pairwise(path)]
    bright = shown.locator(".world-map .line:not(.dim)")
    bright.first.wait_for(state="attached")
    drawn = bright.evaluate_all("all => all.map(it => it.dataset.link.split(' '))")
    assert sorted(drawn) == sorted(links_of)
    shown.locator(".frontier-chart .point.lit").wait_for()
    assert shown.locator(".frontier-chart .point").count() == len(offers)
    # It leads to the question with it alone.
    row.get_by_role("link", name="Plan with this relay").click()
    shown.wait_for_url("**relays=*")
    assert query_of(shown)["relays"] == offers[at]["relays"]
    assert page.violations() == []


def test_a_point_of_the_chart_opens_its_row(page: Watched, grid: Served) -> None:
    plan = plan_of(grid, volume_gb=500)
    shown = page.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 500})}")
    answered(shown, plan)
    points = shown.locator(".frontier-chart .point")
    points.first.wait_for()
    slowest = max(range(len(plan["offers"])), key=lambda at: plan["offers"][at]["duration_s"])
    points.nth(slowest).click()
    shown.locator(f".offers > [data-offer='{slowest}'] > details[open]").wait_for()
    shown.wait_for_url(f"**#row={slowest}")


def test_a_silent_service_leaves_the_answer_of_before(browser: Browser, grid: Served) -> None:
    with watched(browser, allowed=("ERR_FAILED",)) as seen:
        shown = seen.open(f"{grid.url}/?{urlencode(PAIR)}")
        shown.locator(ANSWER).wait_for()
        shown.route("**/v1/plans**", lambda route: route.abort())
        shown.get_by_role("button", name="Plan", exact=True).click()
        shown.locator("#message", has_text="The answer below is as of").wait_for()
        assert shown.locator(ANSWER).is_visible()


REQUESTS: tuple[dict[str, Any], ...] = (
    {
        "src": "us-east",
        "dst": "Sao Paulo",
        "time_value_usd_per_h": "inf",
        "vms": "2",
        "avoid": ["provider:gcp", "aws:us-west-2"],
        "margin": "0.05",
        "connections": "32",
        "relays": "one",
        "vm_start_s": "30.5",
        "budget_usd": "900",
        "deadline_s": "7200",
        "min_throughput_gbps": "1.5",
        "max_age_s": "1e10",
        "candidates": "9",
        "frontier": "false",
    },
    {
        "volume_gb": "0.5",
        "objective": "cost",
        "allow": ["provider:azure"],
        "vms_in": ["azure:eastus=3", "aws:sa-east-1=2"],
        "vm_types": ["aws=t2.micro"],
        "month_to_date_gb": ["*=20000"],
    },
)


@pytest.mark.parametrize("asked", REQUESTS, ids=("many", "by place"))
def test_what_is_copied_gives_the_same_plan(
    asked: dict[str, Any], browser: Browser, grid: Served, grid_store: Path, tmp_path: Path
) -> None:
    with watched(browser) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, **asked}, True)}")
        shown.locator(ANSWER).wait_for()
        shown_id = shown.locator("section:has(#basis) dl code").text_content()
        texts = {}
        for title in ("CLI command", "curl", "Python"):
            shown.get_by_label("Copy as").select_option(title)
            shown.get_by_role("button", name=f"Copy {title}").click()
            shown.locator(".copied", has_text="copied").wait_for()
            texts[title] = shown.evaluate("navigator.clipboard.readText()")
    said = {name for name in asked if name != "frontier"} | set(PAIR)
    for name in set(fields_of(TransferRequest)) - said - {"frontier"}:
        assert f"{name}=" not in texts["Python"]  # what is not said is not copied

    by_command = json.loads(ran(f"{texts['CLI command']} --json", grid_store, tmp_path))
    by_curl = json.loads(ran(texts["curl"], grid_store, tmp_path))
    names: dict[str, Any] = {}
    exec(texts["Python"], names)
    assert {by_command["plan_id"], by_curl["plan_id"], names["plan"].plan_id} == {shown_id}
    assert bool(by_curl["frontier"]) == bool(by_command["frontier"]) == ("frontier" not in asked)


def test_a_name_that_fits_several_regions_offers_each(browser: Browser, grid: Served) -> None:
    asked = {**PAIR, "src": "us-east", "volume_gb": "500"}
    plan = plan_of(grid, **asked)
    (taken,) = [each for each in plan["resolutions"] if each["name"] == "us-east"]
    matches = [taken["region_id"], *taken["others"]]
    with watched(browser, allowed=("422",)) as seen:
        shown = seen.open(f"{grid.url}/?{urlencode(asked)}")
        chips = shown.locator("#option-src-chips .chip")
        names = [text.split(" ")[0] for text in chips.all_text_contents()]
        assert sorted(names) == sorted(matches)
        providers = [name.split(":")[0] for name in names]
        assert len(set(providers[: len(set(providers))])) == len(set(providers))
        current = shown.locator(".chip[aria-current]")
        assert current.inner_text().startswith(
            f"{taken['region_id']} ${plan['cost_usd']['total']:.2f}"
        )
        prices = dict(text.split(" ", 1) for text in chips.all_text_contents() if "$" in text)
        assert 2 <= len(prices) <= 5
        name = next(name for name in prices if name != taken["region_id"])
        other = plan_of(grid, **asked | {"src": name})
        assert prices[name].startswith(f"${other['cost_usd']['total']:,.2f}")
        assert seen.violations() == []
        shown.locator("#option-src-chips .chip", has_text=name).first.click()
        shown.wait_for_url(f"**src={name}*")
        shown.locator(ANSWER).wait_for()
        assert chips.count() == 0
        # What is refused leads on, too.
        shown.get_by_role("combobox", name="From").fill("us-eas")
        shown.get_by_role("button", name="Plan", exact=True).click()
        chips.filter(has_text="us-east").first.wait_for()
        said = shown.locator("#option-src-problem").inner_text()
        assert "From is not a known region" in said


def test_a_recommended_row_that_others_go_before_says_why_on_a_phone(
    browser: Browser, grid: Served
) -> None:
    with watched(browser, width=390, height=844) as seen:
        shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 500})}")
        plan = plan_of(grid, volume_gb=500)
        answered(shown, plan)
        assert rows_of(shown)[0] != 0
        assert shown.get_by_text(plan["offers"][0]["why"], exact=True).is_visible()
        assert not shown.get_by_text(
            plan["offers"][rows_of(shown)[0]]["why"], exact=True
        ).is_visible()
        # What if is one line until it is opened.
        links = shown.locator(".what-ifs a")
        assert not links.first.is_visible()
        shown.locator(".what-ifs summary").click()
        assert all(link.is_visible() for link in links.all())
        assert seen.violations() == []
        assert seen.fits()


def test_names_of_times_in_the_chart_have_room(browser: Browser, grid: Served) -> None:
    for width in (390, 1440):
        with watched(browser, width=width) as seen:
            shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 5000})}#open=frontier")
            shown.locator(".frontier-chart .point").first.wait_for()
            names = shown.locator(".frontier-chart .chart").evaluate(
                """({ plot }) => {
                  const [{ _splits: at, _values: texts }] = plot.axes;
                  const pen = document.createElement("canvas").getContext("2d");
                  pen.font = "12px system-ui, sans-serif";
                  return at.map((x, i) => [plot.valToPos(x, "x"), pen.measureText(texts[i]).width]);
                }"""
            )
            assert len(names) >= 2
            for (one, half), (other, other_half) in pairwise(names):
                assert other - one > (half + other_half) / 2


def test_going_back_leads_to_where_the_reader_was(page: Watched, grid: Served) -> None:
    shown = page.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 500})}")
    shown.locator(ANSWER).wait_for()
    shown.evaluate("scrollTo(0, 700)")
    shown.wait_for_function("history.state?.top === 700")
    # To another question of the page, and to another document.
    shown.get_by_label("Volume").evaluate("it => { it.value = 50; it.form.requestSubmit(); }")
    shown.wait_for_url("**volume_gb=50")
    shown.locator(".verdict", has_text="50 GB").wait_for()
    shown.go_back()
    shown.locator(".verdict", has_text="500 GB").wait_for()
    shown.wait_for_function("scrollY === 700")
    shown.locator(".what-ifs").get_by_role("link", name="no relays").evaluate("it => it.click()")
    shown.locator(".beside").wait_for()
    shown.go_back()
    shown.locator(".beside").wait_for(state="detached")
    shown.locator(ANSWER).wait_for()
    shown.wait_for_function("scrollY === 700")


def test_an_answer_takes_two_screens_and_the_address_says_what_is_open(
    browser: Browser, grid: Served
) -> None:
    for width, height in ((1440, 2000), (390, 2 * 844)):
        with watched(browser, width=width) as seen:
            shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 500})}")
            shown.locator(ANSWER).wait_for()
            assert shown.evaluate("document.documentElement.scrollHeight") <= height
            row = shown.locator(".offers > li").nth(1)
            row.locator("summary").first.click()
            shown.wait_for_url("**#row=*")
            shown.reload()
            row.locator("table").wait_for()

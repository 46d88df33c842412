"""The plan page asks what it says, shows what was answered, and says the same elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from planner.fields.specified import fields_of
from planner.transfer.request import TransferRequest
from tests.dashboard.browser import Watched, query_of, ran, unfold, watched
from tests.http.running import Served

PAIR = {"src": "azure:eastus", "dst": "aws:sa-east-1"}
ANSWER = "#verdict"


def plan_of(service: Served, **asked: Any) -> Any:
    return service.get("/v1/plans?" + urlencode({**PAIR, "frontier": "true", **asked}, True)).json


def answered(page: Page, plan: Any) -> None:
    """Wait until the page shows this plan."""
    page.get_by_text(plan["plan_id"]).wait_for(state="attached")


def column(page: Page, table: str, at: int) -> list[str]:
    return page.locator(f"section:has({table}) tbody td:nth-child({at})").all_inner_texts()


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
    # What an hour is worth is a slider and a number.
    slider = shown.get_by_role("slider", name="Worth of an hour")
    number = shown.locator("[name=time_value_usd_per_h]")
    assert slider.get_attribute("aria-valuetext") == "$20"
    slider.focus()
    shown.keyboard.press("End")
    assert (number.input_value(), slider.get_attribute("aria-valuetext")) == ("200", "$200")
    shown.keyboard.press("Home")
    assert number.input_value() == "0"
    number.fill("50")
    assert slider.get_attribute("aria-valuetext") == "$50"
    number.fill("inf")
    assert slider.get_attribute("aria-valuetext") == "any sum"
    shown.goto(f"{grid.url}/?{urlencode({**PAIR, 'time_value_usd_per_h': 100})}")
    shown.locator(ANSWER).wait_for()
    assert slider.get_attribute("aria-valuetext") == "$100"
    # Without a clipboard, the question is copied the old way.
    shown.get_by_label("Copy as").focus()
    shown.keyboard.press("ArrowDown")
    shown.get_by_role("button", name="Copy curl").click()
    shown.locator(".copied", has_text="copied").wait_for()
    assert "curl" in shown.evaluate("getSelection().toString()")


def test_the_address_is_the_request_and_back_works(page: Watched, grid: Served) -> None:
    shown = page.open(f"{grid.url}/")
    shown.get_by_role("combobox", name="From").fill(PAIR["src"])
    shown.get_by_role("combobox", name="To").fill(PAIR["dst"])
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


def test_options_stand_side_by_side_and_candidates_sort(page: Watched, grid: Served) -> None:
    asked = {"src": "azure:canadacentral", "volume_gb": 500, "time_value_usd_per_h": 500}
    plan = plan_of(grid, **asked)
    shown = page.open(f"{grid.url}/?{urlencode({**PAIR, **asked})}")
    answered(shown, plan)
    rates = shown.locator(".compared tr:has-text('Throughput') td").all_inner_texts()
    options = (plan["direct"], plan["best_relay"], plan)
    assert [text.strip() for text in rates] == [
        f"{option['throughput_gbps']:.2f} Gbit/s" for option in options
    ]
    bounds = shown.locator(".compared tr:has-text('Bounds') td").all_inner_texts()
    assert bounds == [
        f"{o['throughput_gbps_low']:.2f} to {o['throughput_gbps_high']:.2f}" for o in options
    ]
    totals = shown.locator(".compared tr:has-text('Total cost') td").all_inner_texts()
    assert totals == [f"${option['cost_usd']['total']:.2f}" for option in options]

    unfold(shown, "candidates")
    shown.locator("section:has(#candidates) th button", has_text="Total").click()
    costs = [float(text.strip("$")) for text in column(shown, "#candidates", 8)]
    assert costs == sorted(costs, reverse=True)
    assert len(costs) >= 2 + len(plan["alternatives"])
    shown.locator("section:has(#candidates) th button", has_text="Total").click()
    assert [float(text.strip("$")) for text in column(shown, "#candidates", 8)] == costs[::-1]
    names = "\n".join(column(shown, "#candidates", 1))
    assert re.search(r"split: direct \+ .*\s+chosen", names)
    for limit in plan["bottlenecks"]:
        place = limit["region"] if " -> " in limit["region"] else f"at {limit['region']}"
        assert (
            f"{limit['constraint']} {place}" in shown.locator("section:has(#limits)").inner_text()
        )
    for each in plan["advice"]:
        assert each["action"] in shown.locator("section:has(#advice)").inner_text()

    # All relays, of which the six fastest were shown so far, and the chosen one.
    shown.get_by_role("link", name="Compare all single relays").click()
    shown.locator("section:has(#candidates) tbody tr").nth(20).wait_for()
    every = plan_of(grid, **asked, candidates=1000)
    assert every["paths"] == plan["paths"]
    assert every["best_relay"] == plan["best_relay"]
    assert every["alternatives"][: len(plan["alternatives"])] == plan["alternatives"]
    listed = {option["relay"] for option in (every["best_relay"], *every["alternatives"])}
    assert len(listed) > 50
    compared = shown.locator("section:has(#candidates) td:first-child a").all_inner_texts()
    assert set(compared) == listed | {"direct"}

    shown.locator("section:has(#candidates) a", has_text=plan["best_relay"]["relay"]).click()
    shown.wait_for_url("**relays=*")
    assert query_of(shown)["relays"] == [plan["best_relay"]["relay"]]


def test_a_point_of_the_frontier_leads_to_its_plan(page: Watched, grid: Served) -> None:
    asked = {"volume_gb": 500, "min_throughput_gbps": 4}
    plan = plan_of(grid, **asked)
    shown = page.open(f"{grid.url}/?{urlencode({**PAIR, **asked})}")
    answered(shown, plan)
    points = shown.locator(".frontier-chart .point:not(.chosen)")
    points.first.wait_for()
    assert points.count() == len(plan["frontier"])
    fast = plan["frontier"][-2]
    points.nth(len(plan["frontier"]) - 2).hover()
    readout = shown.locator("section:has(#frontier) .readout")
    assert f"{fast['throughput_gbps']:.2f} Gbit/s" in readout.inner_text()
    points.nth(len(plan["frontier"]) - 2).click()
    shown.wait_for_url("**deadline_s=*")
    (deadline_s,) = query_of(shown)["deadline_s"]
    quicker = plan_of(grid, **asked, deadline_s=deadline_s)
    answered(shown, quicker)
    assert quicker["duration_s"] == pytest.approx(fast["duration_s"], rel=0.01)
    # From there, a cheaper point is a matter of the budget. The table has the same points.
    shown.locator("section:has(#frontier) summary").click()
    cheapest = shown.locator("section:has(#frontier) tbody a").last
    cheapest.click()
    shown.wait_for_url("**budget_usd=*")
    # Neither the deadline nor the least rate can be kept with it.
    assert {"deadline_s", "min_throughput_gbps"}.isdisjoint(query_of(shown))
    shown.locator(ANSWER, has_text="Send it direct").wait_for()
    assert float(query_of(shown)["budget_usd"][0]) >= quicker["frontier"][0]["cost_usd"]["total"]


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


def test_an_answer_takes_two_screens_and_the_address_says_what_is_open(
    browser: Browser, grid: Served
) -> None:
    for width, height in ((1440, 1800), (390, 2800)):
        with watched(browser, width=width) as seen:
            shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'volume_gb': 500})}")
            shown.locator(ANSWER).wait_for()
            assert shown.evaluate("document.documentElement.scrollHeight") <= height
            if width < 640:  # and on a phone, all but the bottleneck is folded below two screens
                folded = shown.locator(".answer-grid .folded").first.bounding_box()
                limits = shown.locator("section:has(> #limits)").bounding_box()
                assert folded
                assert limits
                assert max(folded["y"], limits["y"] + limits["height"]) <= 2 * 844
            unfold(shown, "candidates")
            shown.wait_for_url("**#open=candidates")
            shown.reload()
            shown.locator("section:has(#candidates) tbody tr").first.wait_for()

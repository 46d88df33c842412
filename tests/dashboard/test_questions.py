"""Every question has a page: its form, its answer, and the same for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

import relayd
from planner.fields.specified import fields_of
from relayd.emitting.formats import emitters
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS
from tests.dashboard.browser import Watched, ran, settle, unfold, watched
from tests.http.running import Served
from tests.relayd.test_field_cases import given
from tests.waiting import eventually

ANSWER = "#verdict"
PAIR = {"src": "azure:eastus", "dst": "aws:sa-east-1", "volume_gb": 500}
WIDTHS = (1440, 1024, 390)
PHONE_PX = 640
WITH_FILES = ("shuffle", "place-reduce", "place-tasks", "replan")
"""Whose commands are more than options: they write files first."""
OTHERS = [question for question in QUESTIONS if question.name != "transfer"]
LATER = ("place-tasks", "comparison", "replan")
"""Questions whose forms are made as those of the rest, which a change waits for."""
# One kept, one refused, one of whatever is left, and one that a relay may help.
TRANSFERS = """id,src,dst,volume_gb,deadline_s
backup,aws:us-east-1,aws:sa-east-1,2000,2h
impossible,aws:us-east-1,aws:ap-southeast-2,9000,20min
rest,azure:eastus,aws:ap-northeast-1,400,
"""


def plan_id(page: Page) -> str:
    return page.locator("section:has(#basis) dl code").text_content() or ""


def copied(page: Page) -> dict[str, str]:
    """Return what can be copied, by title."""
    found = {}
    for title in ("CLI command", "curl", "Python"):
        page.get_by_label("Copy as").select_option(title)
        text = page.get_by_label(f"{title}: text", exact=True)
        found[title] = str(text.text_content())
    return found


@pytest.mark.parametrize(
    "question",
    [pytest.param(one, marks=pytest.mark.thorough if one.name in LATER else ()) for one in OTHERS],
    ids=lambda question: question.name,
)
def test_a_question_is_asked_shown_shared_and_copied(
    question: Question, browser: Browser, grid: Served, grid_store: Path, tmp_path: Path
) -> None:
    at = OTHERS.index(question)
    expected = grid.ask("POST", question.path, dict(question.example)).json
    width = WIDTHS[at % len(WIDTHS)]
    with watched(browser, width=width, dark=at % 2 == 1) as seen:
        shown = seen.open(f"{grid.url}/?question={question.name}")
        shown.locator("form.plan-form").wait_for()
        for field in fields_of(question.request).values():
            described = shown.locator(f"#option-{field.key}-help").all_text_contents()
            said = field.help.replace("`", "")  # commands and words of one's own are in a code font
            assert described == ([said] if field.option and not field.deprecated else [])
        shown.get_by_role("link", name="An example").click()
        shown.locator(ANSWER).wait_for()
        assert plan_id(shown) == expected["plan_id"]
        assert expected["reason"] in shown.locator(".verdict").inner_text()
        if width < PHONE_PX:
            unfold(shown, "commands")
        settle(shown)
        assert seen.violations() == []
        assert seen.fits()
        texts = copied(shown)
        with shown.expect_download() as download:
            shown.get_by_role("button", name="Download JSON").click()
        assert json.loads(Path(download.value.path()).read_bytes()) == expected
        # The address is enough, and what the form then says is the same question.
        shown.reload()
        shown.locator(ANSWER).wait_for()
        assert plan_id(shown) == expected["plan_id"]
        shown.locator(ANSWER).evaluate("it => it.remove()")
        if width < PHONE_PX:
            shown.get_by_text("The question").click()
        shown.locator("form.plan-form button.main").click()
        shown.locator(ANSWER).wait_for()
        assert plan_id(shown) == expected["plan_id"]

    names: dict[str, Any] = {}
    exec(texts["Python"], names)
    assert names["plan"].plan_id == expected["plan_id"]
    for text in (
        texts["curl"],
        *([f"{texts['CLI command']} --json"] if question.name in WITH_FILES else []),
    ):
        assert json.loads(ran(text, grid_store, tmp_path))["plan_id"] == expected["plan_id"]


def test_rows_are_filled_in_pasted_and_uploaded(browser: Browser, grid: Served) -> None:
    with watched(browser, allowed=("422",)) as seen:
        shown = seen.open(f"{grid.url}/?question=shuffle")
        # Cell by cell, by the keyboard alone.
        for label, typed in (("From", "us-east"), ("To", "sa"), ("Volume", "1.5TB")):
            shown.get_by_label(f"{label}, row 1").focus()
            shown.keyboard.type(typed)
        text = shown.locator("textarea[name=demands]")
        assert text.input_value() == "src,dst,volume_gb\nus-east,sa,1.5TB"
        shown.get_by_role("button", name="Shuffle", exact=True).click()
        shown.locator(ANSWER).wait_for()
        first = grid.ask(
            "POST",
            "/v1/shuffles",
            {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 1500}]},
        ).json
        assert plan_id(shown) == first["plan_id"]

        # A matrix as a spreadsheet copies it, uploaded; the list has its rows.
        matrix = "GB\taws:us-east-1\taws:sa-east-1\naws:us-east-1\t\t70\naws:sa-east-1\t30\t\n"
        shown.get_by_label("Demands: a file").set_input_files(
            {"name": "demands.tsv", "mimeType": "text/plain", "buffer": matrix.encode()}
        )
        eventually(lambda: shown.get_by_label("Volume, row 1").input_value() == "70")
        assert shown.locator(".editor tbody tr").count() == 2
        # What the service can't read stays, and it says why; a bill is read.
        shown.get_by_role("button", name="Text", exact=True).click()
        text.fill("")
        text.evaluate(
            """(area, text) => {
              const clipboardData = new DataTransfer();
              clipboardData.setData("text", text);
              area.dispatchEvent(new ClipboardEvent("paste", { clipboardData }));
            }""",
            "sender,receiver,moved\nus-east,sa,5\n",
        )
        shown.locator(".editor-field small", has_text="--columns src=sender").wait_for()
        assert text.input_value() == "sender,receiver,moved\nus-east,sa,5\n"
        shown.get_by_label("Demands: a file").set_input_files(given("51", "ag_cur.csv"))
        shown.locator(".editor-field small", has_text="1,228.80 USD was paid").wait_for()
        assert "aws:us-east-1,aws:eu-central-1,51200" in text.input_value()
        shown.get_by_label("Demands: a file").set_input_files(
            {"name": "demands.tsv", "mimeType": "text/plain", "buffer": matrix.encode()}
        )
        shown.get_by_role("button", name="List", exact=True).click()
        eventually(lambda: shown.get_by_label("Volume, row 1").input_value() == "70")
        shown.get_by_role("button", name="Remove row 2").click()
        assert text.input_value() == "src,dst,volume_gb\naws:us-east-1,aws:sa-east-1,70"
        shown.get_by_role("button", name="Add a row").click()
        shown.get_by_label("From, row 2").fill("aws:us-east-1")
        shown.get_by_label("To, row 2").fill("nowhere")
        shown.get_by_label("Volume, row 2").fill("1")
        shown.get_by_role("button", name="Shuffle", exact=True).click()
        # What the service finds wrong is said at the field, whose text is shown.
        shown.locator("textarea[aria-invalid]").wait_for()
        assert "nowhere" in shown.locator("#option-demands-problem").inner_text()
        text.fill("src,dst,volume_gb\naws:us-east-1,aws:sa-east-1")
        shown.get_by_role("button", name="Shuffle", exact=True).click()
        shown.locator("#option-demands-problem", has_text="Row 1").wait_for()
        assert "2 of 3 cells" in shown.locator("#option-demands-problem").inner_text()


def test_a_matrix_in_an_address_is_in_the_unit_of_its_corner(page: Watched, grid: Served) -> None:
    matrix = "TB,us-east,sa\nus-east,,1.5\nsa,,\n"
    shown = page.open(f"{grid.url}/?question=shuffle#{urlencode({'demands': matrix})}")
    shown.locator(ANSWER).wait_for()
    rows = [{"src": "us-east", "dst": "sa", "volume_gb": 1500}]
    assert plan_id(shown) == grid.ask("POST", "/v1/shuffles", {"demands": rows}).json["plan_id"]


def test_a_schedule_is_drawn_with_its_deadlines(browser: Browser, grid: Served) -> None:
    with watched(browser, width=390) as seen:
        shown = seen.open(f"{grid.url}/?question=schedule#{urlencode({'transfers': TRANSFERS})}")
        shown.locator(ANSWER, has_text="1 admitted, 1 refused, 1 best effort").wait_for()
        unfold(shown, "commands")
        with shown.expect_download() as download:
            shown.get_by_role("button", name="Download JSON").click()
        plan = json.loads(Path(download.value.path()).read_bytes())
        bars = shown.locator(".gantt .sends")
        bars.first.wait_for(state="attached")
        assert bars.count() == sum(len(each["periods"]) for each in plan["transfers"])
        assert shown.locator(".gantt .deadline").count() == 2
        refused = shown.locator("section:has(#transfers) tr", has_text="impossible").inner_text()
        assert "more VMs at aws:us-east-1" in refused
        # From there, on with this schedule: it is in the form as it was answered.
        shown.get_by_role("link", name="Go on with this schedule").click()
        shown.locator(ANSWER).wait_for()
        existing = shown.locator("textarea[name=existing]").input_value()
        assert json.loads(existing)["plan_id"] == plan["plan_id"]


def test_what_a_schedule_stores_is_drawn_and_listed(browser: Browser, grid: Served) -> None:
    asked = {
        "transfers": "id,src,dst,volume,deadline\nbulk,aws:us-east-1,gcp:us-east1,300GB,12h",
        "tariffs": (
            "src,dst,start,end\naws:us-east-1,aws:us-east-2,0,2h\naws:us-east-2,gcp:us-east1,9h,11h"
        ),
    }
    disk = urlencode({"disk_gb": "aws:us-east-2=1TB"})
    with watched(browser) as seen:
        shown = seen.open(f"{grid.url}/?question=schedule&{disk}#{urlencode(asked)}")
        row = shown.locator("section:has(#stored) tr", has_text="aws:us-east-2")
        row.wait_for()
        assert "300 GB" in row.inner_text()
        shown.locator(".gantt .stored").first.wait_for()
        assert shown.locator(".gantt .stored").count() == 1
        assert seen.violations() == []


def test_two_answers_stand_side_by_side_and_a_plan_becomes_a_script(
    browser: Browser, grid: Served
) -> None:
    before = grid.get(f"/v1/plans?{urlencode({**PAIR, 'vms': 1})}").json
    after = grid.get(f"/v1/plans?{urlencode({**PAIR, 'vms': 2})}").json
    with watched(browser) as seen:
        shown = seen.open(f"{grid.url}/?{urlencode({**PAIR, 'vms': 1})}")
        what_if = shown.get_by_role("link", name="2 VMs a region")
        what_if.focus()
        shown.keyboard.press("Enter")
        beside = shown.locator("section:has(#beside)")
        beside.wait_for()
        assert "VMs a region: 1 → 2" in beside.inner_text()
        rates = beside.locator("tr", has_text="Throughput").locator("td").all_inner_texts()
        assert [text.strip() for text in rates] == [
            f"{plan['throughput_gbps']:.2f} Gbit/s" for plan in (before, after)
        ]
        costs = beside.locator("tr", has_text="Total cost").locator("td").all_inner_texts()
        assert costs == [f"${plan['cost_usd']['total']:.2f}" for plan in (before, after)]
        assert seen.violations() == []
        # What it is compared with stays while the form is changed, and goes when asked to.
        shown.get_by_label("Volume").fill("1TB")
        shown.get_by_role("button", name="Plan", exact=True).click()
        beside.get_by_text("Volume: 500 GB → 1TB").wait_for()
        beside.get_by_role("link", name="Stop comparing").click()
        beside.wait_for(state="detached")
        shown.locator(ANSWER).wait_for()

        tools = shown.get_by_label("Tool", exact=True)
        offered = tools.locator("option").all_inner_texts()
        assert {"rclone", "iperf3", "env"} <= set(offered) <= set(emitters())
        with shown.expect_download() as download:
            shown.get_by_role("button", name="Download JSON").click()
        plan = json.loads(Path(download.value.path()).read_bytes())
        for name in emitters():
            asked = grid.ask("POST", "/v1/plans/scripts", {"plan": plan, "emit": name})
            assert asked.status == (200 if name in offered else 422), name
        tools.select_option("iperf3")
        with shown.expect_download() as download:
            shown.get_by_role("button", name="Download for").click()
        assert download.value.suggested_filename == "iperf3.sh"
        assert Path(download.value.path()).read_text() == relayd.emit(plan, "iperf3")
    refused = grid.ask("POST", "/v1/plans/scripts", {"plan": {}, "emit": "haproxy"})
    assert (refused.status, refused.json["field"]) == (422, "plan")

"""The command line as a user meets it: answers, errors, exit codes."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relayd.__main__ import main
from relayd.cli.commands import build_parser
from relayd.cli.running import handler_of
from tests.properties import examples
from tests.relayd.building import imported
from tests.relayd.conftest import Relayd

PAIR = "--src us-east --dst sa"
TO_JAPAN = ("plan", "azure:eastus", "aws:ap-northeast-1", "--volume", "1TB", "--json")
# Lately: what was measured long ago has faded.
MEASURED_AT = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() - 7200))
GRID = f"""\
src,dst,rtt_ms,aggregate_gbps,connections,measured_at,src_vm,dst_vm
azure:eastus,aws:ap-northeast-1,163,2.0,64,{MEASURED_AT},D32_v5,m5.8xlarge
azure:eastus,azure:japaneast,156,15.6,64,{MEASURED_AT},D32_v5,D32_v5
azure:japaneast,aws:ap-northeast-1,4,9.6,64,{MEASURED_AT},D32_v5,m5.8xlarge
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which a relay through Japan pays."""
    return imported(tmp_path_factory.mktemp("measured") / "measured.db", *GRID.splitlines())


def test_a_fresh_install_answers(relayd: Relayd) -> None:
    outcome = relayd("plan", *PAIR.split())
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.startswith(
        "Send it direct.\naws:us-east-1 -> aws:sa-east-1, 100 GB (assumed"
    )
    for words in ("$ egress", "$ VM", "best relay", "direct (chosen)", "baseline", "taken for"):
        assert words in outcome.out


def test_what_was_measured_too_long_ago_opens_the_answer(tmp_path: Path, relayd: Relayd) -> None:
    grid = GRID.replace(MEASURED_AT, "2022-01-10T00:00:00Z")
    db = imported(tmp_path / "old.db", *grid.splitlines())
    ends = ("azure:eastus", "aws:ap-northeast-1", "--db", db)
    assert relayd("plan", *ends, "--max-age", "30d").code == 4
    opening = relayd("plan", *ends).out.partition("\n\n")[0]
    assert "azure:eastus -> aws:ap-northeast-1 was last measured on 2022-01-10" in opening
    answer = json.loads(relayd("plan", "broadcast", *ends, "--json").out)
    assert "2022-01-10" in answer["outdated"][0]
    assert answer["warnings"][: len(answer["outdated"])] == answer["outdated"]


@pytest.mark.parametrize("years", [0.0, 3.0])
def test_a_price_of_long_ago_opens_the_answer(years: float, tmp_path: Path, relayd: Relayd) -> None:
    month = time.strftime("%Y-%m", time.gmtime(time.time() - years * 365.25 * 86400))
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[[egress]]\nname = "mine"\nfrom = ["aws:us-east-1"]\nto = ["aws:sa-east-1"]\n'
        f'usd_per_gb = 0.02\nas_of = "{month}"\n'
        '[[egress]]\nname = "older"\nfrom = ["aws:us-east-1"]\nto = ["aws:eu-west-1"]\n'
        'usd_per_gb = 0.02\nas_of = "2020-01"\n'
    )
    words = ("plan", *PAIR.split(), "--catalogue", prices)
    outdated = json.loads(relayd(*words, "--json").out)["outdated"]
    assert [f"mine ({month}) is more" in sentence for sentence in outdated] == [True] * (years > 1)
    both = ("aws:us-east-1", "aws:sa-east-1", "aws:eu-west-1", "--catalogue", prices, "--json")
    (said,) = json.loads(relayd("plan", "broadcast", *both).out)["outdated"]
    assert "older (2020-01)" in said
    assert (f"mine ({month})" in said) == (years > 1)
    assert relayd(*words, "--max-price-age", "400d").code == (4 if years else 0)


def test_json_has_the_plan_its_reason_and_what_time_is_worth(
    relayd: Relayd, measured: Path
) -> None:
    def answer(*more: str) -> Any:
        return json.loads(relayd(*TO_JAPAN, "--db", measured, "--vms", "1", *more).out)

    plan = answer("--objective", "time")
    assert plan["verdict"] == "relay"
    assert plan["snapshot"].keys() == {"id", "as_of", "source"}
    assert plan["snapshot"]["as_of"] == MEASURED_AT
    (path,) = plan["paths"]
    assert path["regions"] == ["azure:eastus", "azure:japaneast", "aws:ap-northeast-1"]
    assert "carries 9.60 Gbit/s where direct carries 2.01" in plan["reason"]
    assert plan["direct"]["feasible"] is True
    assert plan["best_relay"]["relay"] == "azure:japaneast"
    assert plan["best_relay"]["gain"] == pytest.approx(4.8, rel=0.02)
    assert plan["best_relay"]["gain_low"] < plan["best_relay"]["gain"] < 5
    values = ("0", "20usd/h", "500usd/h", "inf")
    verdicts = [answer("--time-value", value)["verdict"] for value in values]
    assert verdicts == ["direct", "direct", "relay", "relay"]
    assert answer("--objective", "cost")["verdict"] == "direct"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("--src frankfurt --dst london", 2, ["several", "aws:eu-central-1"]),
        (f"{PAIR} --volume 0GB", 2, ["volume", "above 0"]),
        (f"{PAIR} --volume 5", 2, ["--volume", "no unit", "500GB"]),
        (f"{PAIR} --volume 5parsecs", 2, ["--volume", "parsecs"]),
        (f"{PAIR} --budget 0.01usd", 3, ["budget", "cheapest plan", "Raise"]),
        (f"{PAIR} --min-throughput 900gbps", 3, ["900", "--vms"]),
        (f"{PAIR} --vms many", 2, ["--vms", "whole number"]),
        (f"{PAIR} --margin nan", 2, ["margin"]),
        (f"{PAIR} --objective luck", 2, ["objective", "luck"]),
        (f"{PAIR} --objective cheapest", 2, ["Did you mean cost?"]),
        (f"{PAIR} --objective tiem", 2, ["Did you mean time?"]),
        (f"{PAIR} --deadline 25:00", 2, ["--deadline", "25:00"]),
        (f"{PAIR} --relays aws:us-east-1", 2, ["relays", "end of the transfer"]),
        (f"{PAIR} --vm-type aws=abacus", 2, ["--vm-type", "abacus", "nearest of"]),
        (f"{PAIR} --db /nowhere/at/all.db", 2, ["--db", "/nowhere/at/all.db", "import"]),
        (f"{PAIR} --catalogue /nowhere.toml", 2, ["/nowhere.toml", "can't be read"]),
    ],
)
def test_bad_input_gets_one_clear_paragraph(
    relayd: Relayd, words: str, code: int, says: list[str]
) -> None:
    outcome = relayd("plan", *words.split())
    assert (outcome.code, outcome.out) == (code, "")
    assert all(text in outcome.err for text in says)
    assert outcome.err.startswith("relayd: ")
    assert outcome.err.count("\n") == 1


WORDS = "us-east sa eu 5GB 1e309GB -0GB 2h nan inf aws: : = a=b * country: provider:aws \0"
TEXT = st.text(max_size=12) | st.sampled_from([*WORDS.split(), "٣GB", "1_0GB", "--", "-1", "0x10"])
OPTIONS = (
    "src dst volume budget deadline min-throughput vms connections relays avoid allow "
    "month-to-date vm-type vm-start max-age margin time-value"
)


@settings(
    max_examples=examples(45),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.tuples(st.sampled_from(OPTIONS.split()), TEXT), max_size=4))
def test_no_words_make_a_traceback(pairs: list[tuple[str, str]]) -> None:
    words = ["plan", *PAIR.split()]
    for option, value in pairs:
        words.append(f"--{option}={value}")
    try:
        code = main(words)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    assert code in {0, 2, 3, 4}


NEED_NO_FILE = {"catalogue", "doctor", "help", "lab", "serve"}


@pytest.mark.slow
def test_every_command_refuses_bad_input_in_one_sentence(tmp_path: Path, relayd: Relayd) -> None:
    bad = tmp_path / "bad"
    bad.write_text("\0 {no store, no catalogue, no table")
    known = build_parser().known
    commands = {line: parser for line, parser in known.items() if parser.get_default("command")}
    assert len(commands) > 50
    for command, parser in commands.items():
        words = command.split()
        needed: list[object] = [
            f"{action.option_strings[-1]}={bad}" if action.option_strings else bad
            for action in parser._actions
            if action.required and action.nargs != argparse.PARSER
        ]
        line: list[object] = [*words, "--no-such-option"]
        if not NEED_NO_FILE & {*words}:
            if "export" in words:
                needed[0] = next(iter(parser._get_positional_actions()[0].choices or ()))
            line = [*words, *needed, "--catalogue", bad, "--db", bad]
        outcome = relayd(*line)
        assert outcome.code == 2, line
        assert outcome.err.startswith("relayd: "), line
        assert "Traceback" not in outcome.err + outcome.out, line


def test_each_command_that_asks_no_question_has_a_handler() -> None:
    for parser in build_parser().known.values():
        if (command := parser.get_default("command")) and not parser.get_default("question"):
            assert callable(handler_of(argparse.Namespace(command=command)))


def test_vm_types_are_listed_cheapest_first(relayd: Relayd) -> None:
    words = ("data", "vm-types", "--provider", "azure", "--min-gbps", "25", "--min-vcpus", "4")
    types = json.loads(relayd(*words, "--json").out)["vm_types"]
    prices = [vm["price_usd_per_h"] for vm in types]
    assert prices == sorted(prices)
    assert prices
    assert all(vm["id"].startswith("azure:") and vm["egress_gbps"] >= 25 for vm in types)
    assert all(vm["vcpus"] >= 4 for vm in types)
    assert "aws:c7gn.8xlarge" in relayd("data", "vm-types", "C7GN").out
    for wrong, option in ((("c9zz",), "type"), (("--provider", "ibm"), "--provider")):
        outcome = relayd("data", "vm-types", *wrong)
        assert outcome.code == 2
        assert option in outcome.err


def test_regions_are_listed_with_their_aliases_and_whether_all_may_use_them(relayd: Relayd) -> None:
    def listed(*words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]]
        found = json.loads(relayd("data", "regions", *words, "--json").out)["regions"]
        return found

    assert [one["id"] for one in listed("br", "--provider", "gcp")] == ["gcp:southamerica-east1"]
    assert "--country" in relayd("data", "regions", "--country", "XX").err
    regions = {region["id"]: region for region in listed()}
    assert {"azure:southeastasia", "gcp:us-central1"} <= regions.keys()
    restricted = {name for name, region in regions.items() if region["access"]}
    assert "azure:uaecentral" in restricted < regions.keys()
    assert "sa" in regions["aws:sa-east-1"]["aliases"]


def test_links_and_matrices_have_what_was_measured(relayd: Relayd, measured: Path) -> None:
    data = ("--db", measured, "--json")
    links = json.loads(relayd("data", "links", "--src", "azure:eastus", *data).out)["links"]
    assert {link["src"] for link in links} == {"azure:eastus"}
    assert sum(link["aggregate_gbps"]["source"] == "measured" for link in links) == 2
    matrix = json.loads(relayd("data", "matrix", "--metric", "rtt", *data).out)
    at = matrix["regions"].index
    assert matrix["values"][at("azure:eastus")][at("azure:japaneast")] == 156
    assert matrix["values"][0][0] is None


@pytest.mark.slow
def test_import_reports_and_adds_nothing_twice(relayd: Relayd, tmp_path: Path) -> None:
    file, db = tmp_path / "some.csv", tmp_path / "store.db"
    file.write_text("src,dst,aggregate_mbps\naws:a,aws:b,100\naws:a,aws:b,nan\naws:a,aws:a,5\n")
    first = relayd("import", "csv", file, "--db", db)
    assert first.code == 0
    assert "1 samples added" in first.out
    assert "(line 3)" in first.out
    assert "(line 4)" in first.out
    os.utime(file, (1, 1))  # dated by modification, but the same content
    again = relayd("import", "csv", file, "--db", db)
    assert "0 samples added, 1 already there" in again.out
    # An unknown provider is measured, and says what is missing for a price.
    plan = relayd("plan", "--src", "aws:a", "--dst", "aws:b", "--db", db)
    assert plan.code == 0
    other = tmp_path / "other.csv"
    other.write_text("src,dst,aggregate_mbps\nown:a,own:b,100\n")
    assert relayd("import", "csv", other, "--db", db).code == 0
    unpriced = relayd("plan", "--src", "own:a", "--dst", "own:b", "--db", db)
    assert unpriced.code == 4
    assert "[[egress]]" in unpriced.err


def test_a_file_without_anything_to_use_is_no_success(relayd: Relayd, tmp_path: Path) -> None:
    failed = tmp_path / "failed.json"
    failed.write_text('{"start": {}, "error": "unable to connect to server: Connection refused"}\n')
    outcome = relayd(
        "import", "iperf3", failed, "--src", "us-east", "--dst", "sa", "--db", tmp_path / "store.db"
    )
    assert outcome.code == 5
    assert "Connection refused" in outcome.out
    assert "failed.json" in outcome.err


def test_settings_come_from_options_environment_and_file(
    relayd: Relayd, tmp_path: Path, measured: Path, environment: MutableMapping[str, str]
) -> None:
    ask = (*TO_JAPAN, "--vms", "1")
    folder = tmp_path / "config" / "relayd"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(f'db = "{measured}"\ntime_value = 500\n')
    assert json.loads(relayd(*ask).out)["verdict"] == "relay"
    environment["RELAYD_TIME_VALUE"] = "1usd/h"
    assert json.loads(relayd(*ask).out)["verdict"] == "direct"
    assert json.loads(relayd(*ask, "--time-value", "500").out)["verdict"] == "relay"
    (folder / "config.toml").write_text("colour = 1\n")
    wrong = relayd(*ask)
    assert wrong.code == 2
    assert "colour" in wrong.err


@pytest.mark.slow
def test_as_a_process_it_says_its_version() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "relayd", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"relayd \d+\.\d+\.\d+\n", done.stdout)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "relayd.cli.running" in loaded
    assert not loaded & {"numpy", "pydantic", "relayd.cli.commands"}

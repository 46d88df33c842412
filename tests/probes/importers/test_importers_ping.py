"""ping: outputs of iputils, BusyBox and macOS, whole and damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError
from probes.importers import ping
from probes.samples import Sample
from tests.probes.importers.reading import FIXTURES, outcomes, patient, reasons, samples, skipped

FOLDER = FIXTURES / "ping"
MACOS = (FOLDER / "macos.txt").read_text()


def by_metric(content: str, **options: Any) -> dict[str, Sample]:
    found = samples("ping", content, **options)
    assert len({sample.metric for sample in found}) == len(found)
    return {sample.metric: sample for sample in found}


def test_the_first_reply_is_set_apart_and_duplicates_do_not_count() -> None:
    found = by_metric(MACOS)
    assert found["rtt_ms"].value == 12.35
    assert found["loss_pct"].value == 20.0
    assert found["jitter_ms"].value == pytest.approx(0.07717, abs=1e-4)
    assert found["rtt_ms"].tool == "ping bsd"
    told = json.loads(found["rtt_ms"].detail)
    assert (told["first_ms"], told["median_of"], told["duplicates"]) == (31.402, 3, 1)


def test_a_summary_alone_tells_that_the_first_reply_is_in_it() -> None:
    for name in ("iputils", "busybox"):
        for suffix in ("", "_quiet"):
            found = by_metric((FOLDER / f"{name}{suffix}.txt").read_text())
            assert ("first_included" in json.loads(found["rtt_ms"].detail)) == bool(suffix)


def test_times_printed_with_the_replies_are_the_time_of_the_measurement() -> None:
    text = (FOLDER / "iputils_dated.txt").read_text()
    start = float(text[text.index("[") + 1 : text.index("]")])
    assert {sample.measured_at_s for sample in samples("ping", text)} == {start}
    assert samples("ping", text, measured_at_s=None), "and then none need be stated"


def test_no_reply_at_all_is_a_loss_and_no_round_trip_time() -> None:
    text = (FOLDER / "unreachable.txt").read_text()
    found = by_metric(text)
    assert found.keys() == {"loss_pct"}
    assert found["loss_pct"].value == 100.0
    assert json.loads(found["loss_pct"].detail)["errors"] == {"Destination Port Unreachable": 2}
    assert skipped("ping", text) == [(1, ping.NO_REPLY)]


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("ping: relay.example.net: Name or service not known", "does not resolve"),
        ("ping: cannot resolve relay.example.net: Unknown host", "does not resolve"),
        ("connect: Network is unreachable", "no route"),
        ("ping: socket: Operation not permitted", "may not open its socket"),
    ],
)
def test_failures_are_told_by_their_meaning(line: str, meaning: str) -> None:
    # One failed target among others: the rest of the file still counts.
    found = outcomes("ping", line + "\n" + MACOS)
    assert meaning in next(iter(reasons(found)))
    assert sum(isinstance(outcome, Sample) for outcome in found) == 3


def test_decimal_commas_are_read_as_points() -> None:
    german = MACOS.replace("time=31.402", "time=31,402").replace(
        "min/avg/max/stddev = 12.310/17.138", "min/avg/max/stddev = 12,310/17,138"
    )
    assert samples("ping", german) == samples("ping", MACOS)


@pytest.mark.parametrize("received", [0, 4])
def test_counts_that_can_not_be_are_skipped(received: int) -> None:
    counts = f"{received and 3} packets transmitted, {received} packets received, 0.0% packet loss"
    text = f"--- relay.example.net ping statistics ---\n{counts}\n"
    assert outcomes("ping", text) == [(1, ping.ODD_COUNTS)]


def test_what_is_slower_than_a_minute_or_in_another_language_is_not_believed() -> None:
    found = outcomes("ping", MACOS.replace("time=12.", "time=99912."))
    assert not any(isinstance(o, Sample) and o.value > 60_000 for o in found)
    with pytest.raises(FormatError, match="holds no output of ping"):
        outcomes("ping", "PING-Statistik\n5 Pakete uebertragen\n")


def test_several_runs_give_their_own_samples() -> None:
    second = MACOS.replace("time=12.", "time=14.")
    assert samples("ping", MACOS + second) == samples("ping", MACOS) + samples("ping", second)
    headless = second.partition("\n")[2]
    assert [s.value for s in samples("ping", MACOS + headless)] == [
        s.value for s in samples("ping", MACOS + second)
    ]


def test_several_hosts_in_one_file_need_force() -> None:
    other = MACOS.replace("192.0.2.7", "192.0.2.8")
    with pytest.raises(FormatError, match="several hosts"):
        outcomes("ping", MACOS + other)
    assert len(samples("ping", MACOS + other, force=True)) == 6


@patient
@given(st.integers(60, len(MACOS)))
def test_a_truncated_run_gives_true_figures_or_none(length: int) -> None:
    times_ms = [31.402, 12.31, 12.49, 12.35]
    for outcome in outcomes("ping", MACOS[:length]):
        if not isinstance(outcome, Sample):
            assert outcome.reason in (ping.NO_SUMMARY, ping.NO_TIMES)
        elif outcome.metric == "loss_pct":
            assert outcome.value == 20.0
        elif outcome.metric == "rtt_ms":
            assert outcome.value in times_ms or 12.31 <= outcome.value <= 12.49

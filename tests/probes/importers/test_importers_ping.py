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


@pytest.mark.parametrize(
    ("name", "tool", "metrics"),
    [
        ("iputils", "ping iputils", {"loss_pct", "rtt_ms", "jitter_ms"}),
        ("iputils_quiet", "ping iputils", {"loss_pct", "rtt_ms", "jitter_ms"}),
        ("busybox", "ping busybox", {"loss_pct", "rtt_ms", "jitter_ms"}),
        ("busybox_quiet", "ping busybox", {"loss_pct", "rtt_ms"}),
    ],
)
def test_each_ping_is_told_apart(name: str, tool: str, metrics: set[str]) -> None:
    found = by_metric((FOLDER / f"{name}.txt").read_text())
    assert found.keys() == metrics
    assert {sample.tool for sample in found.values()} == {tool}
    told = json.loads(found["rtt_ms"].detail)
    assert told["min_ms"] <= found["rtt_ms"].value <= told["max_ms"]
    assert ("first_included" in told) == name.endswith("quiet")
    assert found["loss_pct"].value == 0


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


@pytest.mark.parametrize(
    ("unit", "reply", "summary", "counts"),
    [
        (
            "Bytes von",
            "Zeit",
            "{} ping-Statistik",
            "6 Pakete übertragen, 5 empfangen, 16.6667% packet",
        ),
        (
            "octets de",
            "temps",
            "statistiques ping {}",
            "6 paquets transmis, 5 reçus, 16,6667 % paquets",
        ),
        (
            "bytes desde",
            "tiempo",
            "{} ping estadísticas",
            "6 paquetes transmitidos, 5 recibidos, 16% p",
        ),
    ],
)
def test_words_of_other_languages_change_nothing(
    unit: str, reply: str, summary: str, counts: str
) -> None:
    text = (FOLDER / "iputils.txt").read_text()
    lines = text.splitlines()
    host = lines[0].split()[1]
    foreign = []
    for line in lines:
        if "bytes from" in line:
            line = line.replace("bytes from", unit).replace(" time=", f" {reply}=")
        elif line.startswith("---"):
            line = f"--- {summary.format(host)} ---"
        elif "packets transmitted" in line:
            line = f"{counts} perdus, 5007ms"
        foreign.append(line)
    found = {one.metric: one.value for one in samples("ping", "\n".join(foreign))}
    known = {one.metric: one.value for one in samples("ping", text)}
    assert found == known | {"loss_pct": pytest.approx(100 / 6)}


TOO_LONG = "ping: local error: message too long, mtu=1460\n"


@given(st.integers(1, 20), st.integers(0, 20), st.booleans())
def test_packets_that_never_left_the_host_are_no_loss_of_the_path(
    too_long: int, lost: int, is_first: bool
) -> None:
    header = "PING 198.51.100.20 (198.51.100.20) 8972(9000) bytes of data.\n"
    errors = TOO_LONG * too_long
    text = (
        f"{errors * is_first}{header}{errors * (not is_first)}\n"
        "--- 198.51.100.20 ping statistics ---\n"
        f"{too_long + lost} packets transmitted, 0 received, +{too_long} errors, "
        "100% packet loss, time 1015ms\n"
    )
    told = skipped("ping", text)
    why = "message too long: the MTU here is 1460; ping with -s 1432 or less"
    assert [each.reason for each in told].count(why) == too_long
    found = samples("ping", text)
    assert [(each.metric, each.value) for each in found] == [("loss_pct", 100.0)] * bool(lost)
    if found:
        assert json.loads(found[0].detail)["packets"] == lost


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

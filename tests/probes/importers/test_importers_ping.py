"""ping of each system, fping, hping3, tcping, paping and psping: outputs whole and damaged."""

from __future__ import annotations

import json
from statistics import median, pstdev
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


# ---- all tools -----------------------------------------------------------------------------------

FILES = FIXTURES / "pings"
_RUNS: dict[str, tuple[str, float | None, float | None, float | None]] = {
    "ping/busybox.txt": ("ping busybox", 0.069, 0.0, 0.00377),
    "ping/busybox_quiet.txt": ("ping busybox", 0.059, 0.0, None),
    "ping/iputils.txt": ("ping iputils", 0.041, 0.0, 0.00341),
    "ping/iputils_quiet.txt": ("ping iputils", 0.033, 0.0, 0.011),
    "public/jc-centos-ping-ip-dup.out": ("ping iputils", 0.861, 0.0, None),
    "public/pingparsing-ping.txt": ("ping iputils", 99.731, 0.0, 27.566),
    "public/jc-freebsd12-ping-ip.out": ("ping bsd", 0.0385, 0.0, 0.0025),
    "public/jc-freebsd12-ping6-hostname-s.out": ("ping bsd", 0.0665, 0.0, 0.0155),
    "public/jc-osx-ping-hostname.out": ("ping bsd", 37.984, 0.0, 3.198),
    "public/pingparsing-ping_win7.txt": ("ping windows", 96.0, 0.0, 39.744),
    "pings/win.txt": ("ping windows", 0.5, 0.0, None),
    "pings/de.txt": ("ping windows", 26.0, 25.0, 1.0),
    "pings/fr.txt": ("ping windows", 12.0, 0.0, None),
    "pings/ru.txt": ("ping windows", 16.0, 0.0, None),
    "pings/ja.txt": ("ping windows", 11.0, 0.0, None),
    "pings/win6.txt": ("ping windows", 8.0, 0.0, None),
    "pings/unreach.txt": ("ping", None, 100.0, None),
    "pings/fping.txt": ("fping", 12.0, 25.0, 0.1),
    "pings/fpingq.txt": ("fping", 15.1, 0.0, None),
    "pings/fpingC.txt": ("fping", 12.25, 25.0, 0.15),
    "pings/fpingD.txt": ("fping", 12.7, 0.0, None),
    "pings/hping.txt": ("hping3", 1.4, 40.0, 0.0),
    "pings/tcping.txt": ("tcping", 70.3915, 25.0, 0.2585),
    "pings/tcping-rs.txt": ("tcping", 12.427, 0.0, None),
    "pings/tcping-go.txt": ("tcping", 11.5, 0.0, None),
    "pings/tcping-linux.txt": ("tcping", 22.123, None, None),
    "pings/cloverstd.txt": ("tcping", 10.4, 0.0, None),
    "pings/paping.txt": ("paping", 12.54, 100 / 3, None),
    "pings/psping.txt": ("psping", 2.14, 0.0, 0.03859),
    "public/azure-docs-psping.txt": ("psping", 2.14, 0.0, 0.03859),
    "pings/pspingq.txt": ("ping", 8.3, 0.0, None),
}


@pytest.mark.parametrize("name", _RUNS)
def test_each_tool_tells_its_round_trips_their_jitter_and_its_loss(name: str) -> None:
    tool, *figures = _RUNS[name]
    found = samples("", FIXTURES / name)
    assert {one.tool for one in found} == {tool}
    told = dict(zip(("rtt_ms", "loss_pct", "jitter_ms"), figures, strict=True))
    expected = {
        metric: pytest.approx(value, rel=2e-3 if metric == "jitter_ms" else 1e-6)
        for metric, value in told.items()
        if value is not None
    }
    assert {one.metric: one.value for one in found} == expected


def test_times_of_fping_are_kept_and_whole_milliseconds_show_no_jitter() -> None:
    assert samples("", FILES / "fpingD.txt")[0].measured_at_s == pytest.approx(1665300912.12)
    metrics = [one.metric for one in samples("", FILES / "win.txt")]
    assert metrics == ["loss_pct", "rtt_ms"]
    assert samples("", FILES / "win.txt")[1].read_detail()["step_ms"] == 1.0


def test_several_hosts_are_refused_and_nothing_is_told() -> None:
    two = b"10.0.0.1 : xmt/rcv/%loss = 5/5/0%, min/avg/max = 1/2/3\n"
    with pytest.raises(FormatError, match="tests of several hosts"):
        outcomes("", two + two.replace(b"0.1", b"0.2"))
    mixed = b"Probing 10.0.0.1:1/tcp - \n  4 successful, 0 failed. a = 1ms, b = 2ms, c = 3ms\n"
    assert [one.value for one in samples("", mixed)] == [0.0, 3.0]
    with pytest.raises(FormatError, match="holds no output of ping"):
        outcomes("ping", b"PsPing v2.10 - PsPing\n")


# Of replies, and of the counts in the end, of which some break the line.
_REPLIES = st.sampled_from(
    [
        "Reply from 192.0.2.7: bytes=32 time{}ms TTL=57",
        "Antwort von 192.0.2.7: Bytes=32 Zeit{}ms TTL=57",
        "Réponse de 192.0.2.7 : octets=32 temps{} ms TTL=57",
        "Respuesta desde 192.0.2.7: bytes=32 tiempo{}m TTL=57",
        "Ответ от 192.0.2.7: число байт=32 время{}мс TTL=57",
        "Odpowiedź z 192.0.2.7: bajtów=32 czas{} ms TTL=57",
        "Risposta da 192.0.2.7: byte=32 durata{}ms TTL=57",
        "来自 192.0.2.7 的回复: 字节=32 时间{}ms TTL=57",
    ]
)
_COUNTS = st.sampled_from(
    [
        "    x: y = {}, z = {}, v = {}\r\n    ({}% w),",
        "    Pacchetti: Trasmessi = {}, Ricevuti = {},\r\n    Persi = {} ({}% persi),",
        "    数据包: 已发送 = {},已接收 = {},丢失 = {} ({}% 丢失),",
    ]
)


@patient
@given(
    _REPLIES,
    _COUNTS,
    st.sampled_from(["utf-8", "cp850", "cp866", "cp1250"]),
    st.lists(st.integers(0, 999), min_size=3, max_size=9),
    st.integers(0, 5),
)
def test_ping_of_windows_in_any_language_and_encoding(
    reply: str, counts: str, encoding: str, times: list[int], lost: int
) -> None:
    lines = [reply.format(f"={ms}" if ms else "<1") for ms in times]
    sent = len(times) + lost
    told = counts.format(sent, len(times), lost, 100 * lost // sent)
    text = "\r\n".join(["", *lines, "", told, ""])
    rows = outcomes("", text.encode(encoding, "replace"))
    found = {one.metric: one.value for one in rows if isinstance(one, Sample)}
    assert len(found) == len(rows)
    later = [ms or 0.5 for ms in times[1:]]
    expected: dict[str, Any] = {
        "rtt_ms": median(later),
        "loss_pct": pytest.approx(100 * lost / sent),
    }
    if (jitter_ms := pstdev(later)) >= 1:  # of times in whole milliseconds
        expected["jitter_ms"] = pytest.approx(jitter_ms)
    assert found == expected

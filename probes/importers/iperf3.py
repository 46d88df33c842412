"""iperf3's JSON output (``-J``), of one or many streams, of the client or the server.

The figure of a TCP test is the steady rate at the receiver: the median of the intervals after the
transient where there are enough (:mod:`.rates`), else what the receiver counted
over the whole test. Intervals are the receiver's where the file has them; the sender's stand in
only if the totals of both sides agree, because bytes in a send buffer have arrived nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from planner.model.errors import FormatError
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT, MBPS_PER_GBPS
from probes.analysis.series.steady import PACED_SHARE, Interval
from probes.importers import limits
from probes.importers.json_documents import (
    Noise,
    documents,
    field,
    list_field,
    number_field,
    text_field,
)
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.rates import best_window, rate_of
from probes.samples import Metric, Sample, Skipped

NOISE = ("warning: ", "iperf3: ")
BETWEEN_DOCUMENTS = "text of iperf3 between its JSON documents"
SAME_TEST_AGAIN = "the same test again (iperf3 3.16 and 3.17 write some documents twice)"
US_PER_MS = 1000.0

NO_RECEIVER = "no figure of the receiver (interrupted, or the sender's file only)"
NO_STREAMS = "the number of streams is missing or no count"
NO_DURATION = "the duration of the test is missing or no duration"
OTHER_PROTOCOL = "neither TCP nor UDP"
PACED = "paced (-b): the rate is what was asked for, not what the path gives"
BAD_TIME = "start.timestamp is no time"

SIDES_AGREE_WITHIN = 0.05
"""Sent and received totals closer than this: send buffers do not distort the intervals."""

# Matched in order against the lower-case text.
_ERRORS: tuple[tuple[str, str], ...] = (
    ("server is busy", "it runs one test at a time; give each client its own port, or wait"),
    ("connection refused", "no iperf3 server listens there: start `iperf3 -s`"),
    ("no route to host", "routing or a firewall is in the way"),
    ("network is unreachable", "routing or a firewall is in the way"),
    ("timed out", "a firewall drops port 5201, or the server is down"),
    ("name or service not known", "the server's name does not resolve"),
    ("temporary failure in name resolution", "the server's name does not resolve"),
    ("client has terminated", "the client was interrupted before the end"),
    ("server has terminated", "the server was interrupted before the end"),
    ("unable to receive results", "the other side ended before the results were exchanged"),
    ("control socket has closed", "the other side ended or a firewall cut the connection"),
    ("unable to receive control message", "the other side ended or refused the parameters"),
    ("unable to create a new stream", "a stream could not be opened"),
    ("authentication", "the server wants a user name and password"),
    ("bitrate", "the server limits the bitrate of a test"),
)


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each test in the file."""
    return rows_of(_tests(source, options.name), options)


def rows_of(
    tests: Iterable[tuple[int, dict[str, Any] | str]], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield the samples of tests: their documents by line, or reasons to leave them out."""
    cookies: set[str] = set()
    host = ""
    for line, test in tests:
        if isinstance(test, str):
            yield Skipped(line, test)
            continue
        cookie = text_field(test, "start", "cookie")
        if cookie and cookie in cookies:
            yield Skipped(line, SAME_TEST_AGAIN)
            continue
        cookies.add(cookie)
        if "error" in test:
            yield Skipped(line, explained(test["error"]))
            continue
        peer = _peer(test)
        if host and peer and peer != host and not options.force:
            raise FormatError(
                options.name,
                f"holds tests with several hosts ({host}; line {line}: {peer}), but "
                "one --src and one --dst were stated",
                remedy="Import one file per pair of regions; --force if both are the same region.",
            )
        host = host or peer
        yield from samples_of_test(line, test, options)


def _tests(source: Iterator[bytes], name: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each test as one object, and a reason for each line to leave out.

    With ``--json-stream`` (since 3.17) a test is a line of JSON an event; they are put together
    to what ``-J`` would have written.
    """
    begun, test = 0, dict[str, Any]()
    for item in documents(source, name, NOISE):
        if isinstance(item, Noise):
            yield item.line, BETWEEN_DOCUMENTS
            continue
        line, content = item
        if "event" not in content:
            if "start" not in content and "error" not in content:
                raise FormatError(
                    name,
                    f"line {line} begins a JSON document that is not of iperf3",
                    remedy="Give the output of `iperf3 -c HOST -J`.",
                )
            yield line, content
            continue
        event, data = content["event"], content.get("data")
        if event == "start":
            if begun:
                _refuse_unfinished(name, begun)
            begun, test = line, {"start": data, "intervals": []}
        elif event == "interval" and begun:
            test["intervals"].append(data)
        elif event == "error":
            yield begun or line, {**test, "error": data}
            begun, test = 0, {}
        elif event == "end" and begun:
            yield begun, {**test, "end": data}
            begun, test = 0, {}
    if begun:
        _refuse_unfinished(name, begun)


def _refuse_unfinished(name: str, line: int) -> None:
    raise FormatError(
        name,
        f"the test that begins on line {line} has no end",
        remedy="The run was killed, or iperf3 was restarted into the same file: run it again.",
    )


def _peer(test: dict[str, Any]) -> str:
    for side in ("connecting_to", "accepted_connection"):
        if isinstance(field(test, "start", side), dict):
            return text_field(test, "start", side, "host")
    return ""


def explained(text: object) -> str:
    """Return iperf3's own error text and, where known, its meaning.

    iperf3 puts it into the JSON and, with ``-J``, exits 0 all the same.
    """
    own = " ".join(text.split())[:120] if isinstance(text, str) else "an error without text"
    own = own.removeprefix("error - ").rstrip(": ")
    lower = own.lower()
    meaning = next((meaning for part, meaning in _ERRORS if part in lower), "")
    return f"iperf3 failed: {own} ({meaning})" if meaning else f"iperf3 failed: {own}"


class _Flow(NamedTuple):
    """One direction of a test. ``suffix`` is what iperf3 adds to its keys for ``--bidir``."""

    suffix: str
    reverse: bool


def samples_of_test(
    line: int, test: dict[str, Any], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield the samples of a test that ended without an error."""
    streams = number_field(test, "start", "test_start", "num_streams")
    if streams is None or not 1 <= streams <= limits.MAX_CONNECTIONS or streams != int(streams):
        yield Skipped(line, NO_STREAMS)
        return
    time_s = number_field(test, "start", "timestamp", "timesecs")
    if time_s is not None and not limits.MIN_TIME_S <= time_s <= limits.MAX_TIME_S:
        yield Skipped(line, BAD_TIME)
        return
    start_s = options.start_s(time_s)
    protocol = text_field(test, "start", "test_start", "protocol") or "TCP"
    reverse = bool(number_field(test, "start", "test_start", "reverse"))
    flows = [_Flow("", reverse)]
    if isinstance(field(test, "end", "sum_received_bidir_reverse"), dict):
        flows.append(_Flow("_bidir_reverse", not reverse))
    for flow in flows:
        if protocol == "TCP":
            found = _tcp(test, flow, int(streams))
        elif protocol == "UDP":
            found = _udp(test, flow)
        else:
            found = OTHER_PROTOCOL
        if isinstance(found, _Paced) and options.force:
            found = found.result
        if isinstance(found, _Paced):
            found = PACED
        if isinstance(found, str):
            yield Skipped(line, found)
            continue
        if len(flows) > 1:
            found.detail["bidir"] = True
        yield _sample(test, flow, int(streams), start_s, found, options)


class _Result(NamedTuple):
    metric: Metric
    mbps: float
    duration_s: float
    warmed_up: bool
    detail: dict[str, Any]
    intervals: int | None = None


class _Paced(NamedTuple):
    result: _Result


def _tcp(test: dict[str, Any], flow: _Flow, streams: int) -> _Result | _Paced | str:
    received = field(test, "end", "sum_received" + flow.suffix)
    mbps, seconds = _mbps(received), number_field(received, "seconds")
    if not mbps:
        return NO_RECEIVER
    if seconds is None or not 0 < seconds <= limits.MAX_DURATION_S:
        return NO_DURATION
    warmed_up = (number_field(test, "start", "test_start", "omit") or 0.0) > 0
    detail: dict[str, Any] = {"received_mbps": mbps}
    steady = rate_of(*_counted(test, flow), warmed_up=warmed_up)
    if steady is not None:
        detail |= steady.detail
        if "findings" in detail and (omitted := _intervals(test, flow, omitted=True)):
            detail["omitted_s"] = round(sum(interval.seconds for interval in omitted), 3)
            megabits = sum(interval.seconds * interval.mbps for interval in omitted)
            detail["omitted_gb"] = round(megabits / MBPS_PER_GBPS / BITS_PER_BYTE, 6)
    sent = field(test, "end", "sum_sent" + flow.suffix)
    if received is sent:
        detail["counted_at"] = "sender"
    retransmits = number_field(sent, "retransmits")
    if retransmits is not None and retransmits >= 0:
        detail["retransmits"] = int(retransmits)
    if rtt_ms := _loaded_rtt_ms(test, flow):
        detail["mean_rtt_under_load_ms"] = rtt_ms
    congestion = text_field(test, "end", "sender_tcp_congestion")
    if congestion and not flow.suffix:  # the key names only one of the two senders
        detail["congestion"] = congestion[:32]
    result = _Result(
        metric="per_flow_mbps" if streams == 1 else "aggregate_mbps",
        mbps=mbps if steady is None else steady.mbps,
        duration_s=seconds if steady is None else steady.duration_s,
        warmed_up=warmed_up or steady is not None,
        detail=detail,
        intervals=steady.intervals if steady else None,
    )
    if problem := limits.fault(result.metric, result.mbps, "bits_per_second"):
        return problem
    # The target applies to each stream; older versions do not state it.
    target_bps = number_field(test, "start", "test_start", "target_bitrate") or 0.0
    target_mbps = target_bps * streams / BITS_PER_MBIT
    if 0 < target_mbps * PACED_SHARE <= result.mbps:
        detail["paced_at_mbps"] = target_mbps
        return _Paced(result)
    return result


def _udp(test: dict[str, Any], flow: _Flow) -> _Result | str:
    """Read a UDP test; its loss is that of the offered rate, not of the path at rest."""
    received = field(test, "end", "sum_received" + flow.suffix)
    total = field(test, "end", "sum" + flow.suffix)
    lost_pct = number_field(total, "lost_percent")
    if lost_pct is None:
        lost_pct = number_field(received, "lost_percent")
    mbps = _mbps(received)
    if not mbps and (offered := _mbps(total)) and lost_pct is not None:
        # Before 3.7 the only total is the sender's, together with the receiver's loss.
        mbps = offered * (1 - lost_pct / 100)
    seconds = number_field(received, "seconds") or number_field(total, "seconds")
    if not mbps:
        return NO_RECEIVER
    if seconds is None or not 0 < seconds <= limits.MAX_DURATION_S:
        return NO_DURATION
    detail: dict[str, Any] = {}
    if not limits.fault("loss_pct", lost_pct, ""):
        detail["loss_at_this_rate_pct"] = lost_pct
    jitter_ms = number_field(received, "jitter_ms")
    if jitter_ms is None:
        jitter_ms = number_field(total, "jitter_ms")
    if not limits.fault("jitter_ms", jitter_ms, ""):
        detail["jitter_ms"] = jitter_ms
    sent = _mbps(field(test, "end", "sum_sent" + flow.suffix)) or _mbps(total)
    if sent:
        detail["offered_mbps"] = sent
    if asked := number_field(test, "start", "test_start", "target_bitrate"):
        streams = number_field(test, "start", "test_start", "num_streams") or 1
        detail["asked_mbps"] = asked * streams / BITS_PER_MBIT
    best = best_window(_received(test, flow), mbps, sent)
    detail |= best.detail
    mbps = best.mbps
    if problem := limits.fault("udp_mbps", mbps, "bits_per_second"):
        return problem
    return _Result("udp_mbps", mbps, seconds, True, detail)


def _sample(
    test: dict[str, Any],
    flow: _Flow,
    streams: int,
    start_s: float,
    found: _Result,
    options: ImportOptions,
) -> Sample:
    if flow.reverse:
        found.detail["reverse"] = True
    version = text_field(test, "start", "version").removeprefix("iperf ").strip()[:16]
    return options.sample(
        found.metric,
        found.mbps,
        start_s,
        f"{text_field(test, 'tool') or 'iperf3'} {version}".strip(),
        found.detail,
        reverse=flow.reverse,
        connections=streams,
        duration_s=found.duration_s,
        warmed_up=found.warmed_up,
        intervals=found.intervals,
    )


def _received(test: dict[str, Any], flow: _Flow) -> list[Interval]:
    """Return the receiver's intervals, where the file has them."""
    client_file = isinstance(field(test, "start", "connecting_to"), dict)
    if client_file == flow.reverse:
        return _intervals(test, flow)
    server = field(test, "server_output_json")
    return _intervals(server, flow) if isinstance(server, dict) else []


def _counted(test: dict[str, Any], flow: _Flow) -> tuple[list[Interval], str]:
    """Return the intervals that show what arrived, and the side that counted them."""
    if found := _received(test, flow):
        return found, "receiver"
    sent = number_field(test, "end", "sum_sent" + flow.suffix, "bytes")
    received = number_field(test, "end", "sum_received" + flow.suffix, "bytes")
    if not sent or not received or abs(sent - received) > SIDES_AGREE_WITHIN * sent:
        return [], ""
    return _intervals(test, flow), "sender"


def _intervals(test: dict[str, Any], flow: _Flow, *, omitted: bool = False) -> list[Interval]:
    """Return the intervals that count, or those that were left out as a warm-up."""
    found = []
    for interval in list_field(test, "intervals"):
        total = field(interval, "sum" + flow.suffix)
        if (field(total, "omitted") is True) is not omitted:
            continue
        seconds, mbps = number_field(total, "seconds"), _mbps(total)
        if seconds is not None and mbps is not None and seconds > 0 and mbps >= 0:
            found.append(Interval(seconds, mbps))
    return found


def _loaded_rtt_ms(test: dict[str, Any], flow: _Flow) -> float | None:
    """Mean over the sending streams of the round-trip time under this test's own load.

    iperf3 gives microseconds, and 0 at the side that does not send.
    """
    if flow.suffix:
        return None
    rtts = [
        rtt
        for stream in list_field(test, "end", "streams")
        if (rtt := number_field(stream, "sender", "mean_rtt")) and rtt > 0
    ]
    return sum(rtts) / len(rtts) / US_PER_MS if rtts else None


def _mbps(total: object) -> float | None:
    bps = number_field(total, "bits_per_second")
    return None if bps is None else bps / BITS_PER_MBIT

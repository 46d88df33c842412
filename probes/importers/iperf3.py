"""iperf3's JSON output (``-J``), of one or many streams, of the client or the server.

The figure of a TCP test is the steady rate at the receiver: the median of the intervals after the
transient where there are enough (:mod:`.rates`), else the receiver's mean over the whole test.
Intervals are the receiver's where the file has them; the sender's stand in
only if the totals of both sides agree, because bytes in a send buffer have arrived nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import inf, isfinite
from typing import Any, BinaryIO, NamedTuple, NoReturn

from planner.fields.json_text import RepeatedValues
from planner.model.errors import FormatError
from planner.model.throughput import STOCK_RANGE_MB
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT, MS_PER_S
from probes.analysis.steady_state import Interval
from probes.importers import limits
from probes.importers.importer import format_table, importer_of
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.rates import MIN_INTERVALS, RateTest
from probes.importers.text import documents, field, list_field, number_field, text_field
from probes.samples import MAX_CONNECTIONS, MAX_TIME_S, MIN_TIME_S, Sample, SkippedRow

NOISE = ("warning: ", "iperf3: ")
SAME_TEST_AGAIN = "the same test again (iperf3 3.16 and 3.17 write some documents twice)"
US_PER_MS = 1000.0
BIDIR = "_bidir_reverse"
"""Ends the keys of the direction from the server to the client."""
BYTES_PER_MB = 1e6

NO_RECEIVER = "no figure of the receiver (interrupted, or the sender's file only)"
NO_DIRECTIONS = "sums are there twice (--bidir of iperf3 3.7 to 3.10), without their directions"
EVEN = "a round rate in every interval: it was paced, and counts as a lower bound alone"
BAD_TIME = "start.timestamp is no time"

STATES_TARGET = 13
"""Minor version of iperf3 from which on its JSON states what ``-b`` asked for."""
EVEN_WITHIN = 0.01
"""Of the mean: a second at 100 Mbit/s is 95 or 96 writes of 128 KiB."""
ROUND_WITHIN = 0.002
"""Of a round figure; texts give intervals three digits."""
_WAYS = ("sent", "received")
SIDES_AGREE_WITHIN = 0.05
"""Sent and received totals closer than this: send buffers do not distort the intervals."""


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each test in the file."""
    return rows_of(_tests(stream, options.name), options)


def rows_of(
    tests: Iterable[tuple[int, dict[str, Any] | str]], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield the samples of tests: their documents by line, or reasons to leave them out."""
    seen: set[tuple[str, int]] = set()  # cookies, and hashes of what their tests found
    host = ""
    for line, test in tests:
        if isinstance(test, str):
            yield SkippedRow(line, test)
            continue
        cookie = text_field(test, "start", "cookie")
        found = cookie, hash(repr(test.get("end")))
        if cookie and found in seen:
            yield SkippedRow(line, SAME_TEST_AGAIN)
            continue
        seen.add(found)
        if "error" in test:
            yield SkippedRow(line, explained(test["error"]))
            continue
        sides = (field(test, "start", key) for key in ("connecting_to", "accepted_connection"))
        peer = text_field(next((side for side in sides if isinstance(side, dict)), None), "host")
        host = options.one_host(host, peer, line)
        yield from samples_of_test(line, test, options)


def _tests(stream: BinaryIO, name: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each test as one object, and a reason for each line to leave out.

    With ``--json-stream`` (since 3.17) a test is a line of JSON an event; together they make the
    document that ``-J`` would have written.
    """
    begun, test = 0, dict[str, Any]()
    for line, content in documents(stream, name, NOISE, keep_repeated=True):
        if content is None:
            yield line, "text of iperf3 between its JSON documents"
            continue
        if "event" not in content:
            if "start" not in content and "error" not in content:
                problem = f"line {line} begins a JSON document that is not of iperf3"
                raise FormatError(name, problem, remedy="Give the output of `iperf3 -c HOST -J`.")
            yield line, content
            continue
        event, data = content["event"], content.get("data")
        if event == "start":
            if begun:
                _refuse_unfinished(name, begun)
            begun, test = line, {"start": data, "intervals": []}
        elif event == "interval" and begun:
            test["intervals"].append(data)
        elif event == "error" or (event == "end" and begun):
            yield begun or line, {**test, event: data}
            begun, test = 0, {}
    if begun:
        _refuse_unfinished(name, begun)


def _refuse_unfinished(name: str, line: int) -> NoReturn:
    problem = f"the test that begins on line {line} has no end"
    remedy = "The run was killed, or iperf3 was restarted into the same file: run it again."
    raise FormatError(name, problem, remedy=remedy)


def explained(text: object) -> str:
    """Return iperf3's own error text and, where known, its meaning.

    iperf3 puts it into the JSON and, with ``-J``, exits 0 all the same.
    """
    own = " ".join(text.split())[:120] if isinstance(text, str) else "an error without text"
    own = own.removeprefix("error - ").rstrip(": ")
    lower, errors = own.lower(), format_table()["iperf3_errors"]
    meaning = next((meaning for part, meaning in errors if part in lower), "")
    return f"iperf3 failed: {own} ({meaning})" if meaning else f"iperf3 failed: {own}"


def samples_of_test(
    line: int, test: dict[str, Any], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield the samples of a test that ended without an error."""
    is_client = isinstance(field(test, "start", "connecting_to"), dict)
    with_sums = [field(test, "end"), *list_field(test, "intervals")]
    with_sums += list_field(test, "server_output_json", "intervals")
    if not all(_tell_directions(one, is_client=is_client) for one in with_sums):
        yield SkippedRow(line, NO_DIRECTIONS)
        return
    settings = field(test, "start", "test_start")
    streams = number_field(settings, "num_streams")
    if streams is None or not 1 <= streams <= MAX_CONNECTIONS or streams != int(streams):
        yield SkippedRow(line, "the number of streams is missing or no count")
        return
    time_s = number_field(test, "start", "timestamp", "timesecs")
    if time_s is not None and not MIN_TIME_S <= time_s <= MAX_TIME_S:
        yield SkippedRow(line, BAD_TIME)
        return
    version = text_field(test, "start", "version").removeprefix("iperf ").strip()[:16]
    tool = f"{text_field(test, 'tool') or 'iperf3'} {version}".strip()
    begun = RateTest(options.start_s(time_s), tool, int(streams), 0.0, None, ())
    read_flow = {"TCP": _tcp, "UDP": _udp}.get(text_field(settings, "protocol") or "TCP")
    reverse = bool(number_field(settings, "reverse"))
    flows = [_Flow(test, "", reverse)]
    if isinstance(field(test, "end", "sum_received" + BIDIR), dict):
        flows.append(_Flow(test, BIDIR, not reverse))
    for flow in flows:
        rates = read_flow(begun, flow) if read_flow else "neither TCP nor UDP"
        if isinstance(rates, str):
            yield SkippedRow(line, rates)
            continue
        way = {"bidir": len(flows) > 1, "reverse": flow.reverse}
        rates = rates._replace(way={name: True for name, holds in way.items() if holds})
        row = rates.row(line, options)
        if isinstance(row, Sample) and "paced_at_mbps" in row.detail and not rates.paced_by:
            yield SkippedRow(line, EVEN)
        yield row


def _tell_directions(sums: object, *, is_client: bool) -> bool:
    """Give the reverse direction keys of its own, as iperf3 does since 3.11.

    With ``--bidir``, 3.7 to 3.10 write each sum twice (https://github.com/esnet/iperf/issues/952).
    ``sender`` says of each whether this side's streams sent it. Returns whether it does.
    """
    if not isinstance(sums, dict):
        return True
    for key, values in [one for one in sums.items() if isinstance(one[1], RepeatedValues)]:
        forward = [value for value in values if field(value, "sender") is is_client]
        reverse = [value for value in values if field(value, "sender") is (not is_client)]
        if not (len(values) == 2 and forward and reverse):
            return False
        sums[key], sums[key + BIDIR] = forward[0], reverse[0]
    return True


def intervals_of(document: object, name: str = "sum", *, omitted: bool = False) -> list[Interval]:
    """Return the intervals of a test that count, or those that were left out as a warm-up."""
    intervals = []
    for interval in list_field(document, "intervals"):
        total = field(interval, name)
        if (field(total, "omitted") is True) is not omitted:
            continue
        seconds, mbps = number_field(total, "seconds"), _mbps(total)
        if seconds is not None and mbps is not None and seconds > 0 and mbps >= 0:
            intervals.append(Interval(seconds, mbps))
    return intervals


class _Flow(NamedTuple):
    """One direction of a test. iperf3 adds ``suffix`` to its keys for ``--bidir``."""

    test: dict[str, Any]
    suffix: str
    reverse: bool

    def total(self, name: str) -> object:
        """Return the sums over the whole test at one side."""
        return field(self.test, "end", name + self.suffix)

    def start(self, *path: str) -> float:
        """Return a figure of the test's start; 0 where it is not stated."""
        return number_field(self.test, "start", *path) or 0.0

    def setting(self, name: str) -> float:
        """Return a setting of the test; 0 where it is not stated."""
        return self.start("test_start", name)

    def target_mbps(self) -> float:
        """Return the target rate of all streams; 0 in older versions, which do not state it."""
        return self.setting("target_bitrate") * (self.setting("num_streams") or 1) / BITS_PER_MBIT

    def pace(self) -> tuple[float, str]:
        """Return the least rate in Mbit/s to which the sender was held, and by which option.

        ``-b``, ``--fq-rate`` and ``-w`` each hold one stream. A window of ``-w`` carries at most
        itself a round trip; where the path holds the stream instead, queues make that longer.
        """
        streams = self.setting("num_streams") or 1.0
        fq_bps = self.setting("fqrate") or self.start("fq_rate")
        window_bits = self.start("sock_bufsize") * BITS_PER_BYTE
        rtt_ms = self.loaded_rtt_ms("min_rtt") or inf
        held = [
            (self.target_mbps(), "-b or -R"),
            (fq_bps * streams / BITS_PER_MBIT, "--fq-rate"),
            (window_bits * streams * MS_PER_S / rtt_ms / BITS_PER_MBIT, "-w"),
        ]
        return min((one for one in held if one[0] > 0), default=(self.even_mbps(), ""))

    def even_mbps(self) -> float:
        """Return the round rate that all intervals show; 0 if none, or if the file has ``-b``.

        Versions before 3.13, and texts, do not say what ``-b`` asked for. Paths begin with slow
        start, and what shapes them counts headers too, so that payload comes at no round rate.
        """
        minor = re.search(r"\b3\.(\d+)", text_field(self.test, "start", "version"))
        stated = number_field(self.test, "start", "test_start", "target_bitrate") is not None
        rates = [*self.intervals(self.test, omitted=True), *self.counted()[0]]
        if stated or (minor and int(minor[1]) >= STATES_TARGET) or len(rates) < MIN_INTERVALS:
            return 0.0
        mbps = sum(one.seconds * one.mbps for one in rates) / sum(one.seconds for one in rates)
        is_even = isfinite(mbps) and all(
            abs(one.mbps - mbps) <= EVEN_WITHIN * mbps for one in rates
        )
        # 1, 1.5, 2 and so on, of all streams or of each, which is what -b states
        of_streams = (mbps, mbps / (self.setting("num_streams") or 1))
        figures = [2 * float(f"{one:e}".partition("e")[0]) for one in of_streams if is_even]
        is_round = any(abs(one - round(one)) <= ROUND_WITHIN * one for one in figures)
        return mbps if is_round else 0.0

    def window_mb(self) -> float:
        """Return the receive window of the sockets, where it is not a host's as it comes; else 0.

        Linux doubles what ``-w`` asks for and grants at most ``rmem_max``; half is for payload. A
        buffer that grows by itself tells nothing, but for one that begins larger than others end.
        """
        window_mb = self.start("rcvbuf_actual") / 2 / BYTES_PER_MB
        is_asked = self.start("sock_bufsize") or window_mb > STOCK_RANGE_MB[1]
        return round(window_mb, 3) if is_asked else 0.0

    def received(self) -> list[Interval]:
        """Return the receiver's intervals, where the file has them."""
        client_file = isinstance(field(self.test, "start", "connecting_to"), dict)
        of_server = field(self.test, "server_output_json")
        return self.intervals(self.test if client_file == self.reverse else of_server)

    def counted(self) -> tuple[list[Interval], str]:
        """Return the intervals that show the rate of arrival, and the side that counted them."""
        if received := self.received():
            return received, "receiver"
        sent, arrived = (number_field(self.total(f"sum_{way}"), "bytes") for way in _WAYS)
        if not sent or not arrived or abs(sent - arrived) > SIDES_AGREE_WITHIN * sent:
            return [], ""
        return self.intervals(self.test), "sender"

    def intervals(self, document: object, *, omitted: bool = False) -> list[Interval]:
        """Return the intervals that count, or those that were left out as a warm-up."""
        return intervals_of(document, "sum" + self.suffix, omitted=omitted)

    def loaded_rtt_ms(self, figure: str = "mean_rtt") -> float | None:
        """Return the mean over the sending streams of the round-trip time under this test's load.

        iperf3 gives microseconds, and 0 at the side that does not send.
        """
        if self.suffix:
            return None
        streams = list_field(self.test, "end", "streams")
        rtts = [number_field(stream, "sender", figure) or 0.0 for stream in streams]
        rtts = [rtt for rtt in rtts if rtt > 0]
        return sum(rtts) / len(rtts) / US_PER_MS if rtts else None


def _tcp(begun: RateTest, flow: _Flow) -> RateTest | str:
    received, sent = flow.total("sum_received"), flow.total("sum_sent")
    if not (mbps := _mbps(received)):
        return NO_RECEIVER
    retransmits = number_field(sent, "retransmits")
    congestion = text_field(flow.test, "end", "sender_tcp_congestion")[:32]
    more = {
        "counted_at": "sender" if received is sent else None,
        "retransmits": None if retransmits is None or retransmits < 0 else int(retransmits),
        "mean_rtt_under_load_ms": flow.loaded_rtt_ms(),
        # The key names only one of the two senders.
        "congestion": None if flow.suffix else congestion or None,
        "window_mb": flow.window_mb() or None,
    }
    intervals, side = flow.counted()
    paced_at_mbps, paced_by = flow.pace()
    return begun._replace(
        mbps=mbps,
        seconds=number_field(received, "seconds"),
        intervals=intervals,
        side=side,
        warmed_up=flow.setting("omit") > 0,
        paced_at_mbps=paced_at_mbps,
        paced_by=paced_by,
        detail={"received_mbps": mbps},
        more={name: told for name, told in more.items() if told is not None},
        omitted=flow.intervals(flow.test, omitted=True),
    )


def _udp(begun: RateTest, flow: _Flow) -> RateTest | str:
    """Read a UDP test; its loss is that of the offered rate, not of the path at rest."""
    received, total = flow.total("sum_received"), flow.total("sum")
    lost_pct = _first("lost_percent", total, received)
    jitter_ms = _first("jitter_ms", received, total)
    mbps, offered_mbps = _mbps(received), _mbps(total)
    if not mbps and offered_mbps and lost_pct is not None:
        # Before 3.7 the only total is the sender's, together with the receiver's loss.
        mbps = offered_mbps * (1 - lost_pct / 100)
    if not mbps:
        return NO_RECEIVER
    sent_mbps = _mbps(flow.total("sum_sent")) or offered_mbps
    detail = {
        "loss_at_this_rate_pct": None if limits.fault("loss_pct", lost_pct, "") else lost_pct,
        "jitter_ms": None if limits.fault("jitter_ms", jitter_ms, "") else jitter_ms,
        "offered_mbps": sent_mbps or None,
        "asked_mbps": flow.target_mbps() or None,
    }
    return begun._replace(
        mbps=mbps,
        seconds=number_field(received, "seconds") or number_field(total, "seconds"),
        intervals=flow.received(),
        is_udp=True,
        sent_mbps=sent_mbps,
        detail={name: told for name, told in detail.items() if told is not None},
    )


def _first(name: str, *totals: object) -> float | None:
    found = (number_field(total, name) for total in totals)
    return next((figure for figure in found if figure is not None), None)


def _mbps(total: object) -> float | None:
    bps = number_field(total, "bits_per_second")
    return None if bps is None else bps / BITS_PER_MBIT


IMPORTER = importer_of("iperf3", {"": read})

"""iperf3: captured outputs of the real tool (3.12, loopback), and each way they get damaged."""

from __future__ import annotations

import json
import random
import re
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.analysis.steady_state import Interval, changes_in, steady_state
from probes.importers import iperf3
from probes.importers.iperf3 import EVEN
from probes.importers.rates import PACED, WENT_DOWN
from probes.samples import Sample, SkippedRow
from tests.probes.importers.reading import FIXTURES, outcomes, patient, samples, skipped

FOLDER = FIXTURES / "iperf3"
ONE = (FOLDER / "one_stream.json").read_text()
TWO = (FOLDER / "two_streams.json").read_text()


def document(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return content


def detail(sample: Sample) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(sample.detail)
    return content


@pytest.mark.parametrize(
    ("name", "metric", "of", "connections", "warmed_up", "src"),
    [
        ("one_stream", "per_flow_mbps", "sum_received", 1, False, "aws:us-east-1"),
        ("two_streams", "aggregate_mbps", "", 2, True, "aws:us-east-1"),
        ("omit", "per_flow_mbps", "", 1, True, "aws:us-east-1"),
        ("bidir", "per_flow_mbps", "sum_received", 1, False, "aws:us-east-1"),
        ("bidir", "per_flow_mbps", "sum_received_bidir_reverse", 1, False, "gcp:us-east1"),
        ("udp", "udp_mbps", "sum_received", 1, True, "aws:us-east-1"),
        ("udp_reverse", "udp_mbps", "sum_received", 1, True, "gcp:us-east1"),
    ],
)
def test_what_captured_outputs_give(
    name: str, metric: str, of: str, connections: int, warmed_up: bool, src: str
) -> None:
    """The receiver's figure, or the median of intervals; data flows from the server if reversed."""
    test = document(f"{name}.json")
    found = samples("iperf3", FOLDER / f"{name}.json")
    (sample,) = (one for one in found if one.src == src)
    assert len(found) == (2 if name == "bidir" else 1)
    assert (sample.metric, sample.connections) == (metric, connections)
    assert sample.tool == "iperf3 3.12"
    assert sample.measured_at_s == test["start"]["timestamp"]["timesecs"]
    assert sample.warmed_up == warmed_up
    if of:
        received = test["end"][of]
        assert sample.value == received["bits_per_second"] / 1e6
    else:
        assert sample.duration_s == pytest.approx(11 if connections == 2 else 10, abs=0.01)
    if name == "one_stream":  # of the test's own load: told, but not as a sample
        assert detail(sample)["mean_rtt_under_load_ms"] == pytest.approx(0.053)
    if connections == 2:
        rates = [interval["sum"]["bits_per_second"] / 1e6 for interval in test["intervals"]]
        assert sample.value == median(rates[1:])
    if metric == "udp_mbps":
        assert detail(sample)["loss_at_this_rate_pct"] == 0
        assert detail(sample)["jitter_ms"] == received["jitter_ms"]


def test_reverse_swaps_the_ends_because_data_flows_from_the_server() -> None:
    (sample,) = samples("iperf3", FOLDER / "reverse.json", src_vm="client", dst_vm="server")
    assert (sample.src, sample.src_zone, sample.src_vm) == ("gcp:us-east1", "b", "server")
    assert (sample.dst, sample.dst_zone, sample.dst_vm) == ("aws:us-east-1", "", "client")
    assert detail(sample)["reverse"] is True


def test_intervals_of_the_sender_count_only_while_both_sides_agree() -> None:
    test = document("two_streams.json")
    received = test["end"]["sum_received"]
    received["bytes"] *= 0.8
    received["bits_per_second"] *= 0.8
    (sample,) = samples("iperf3", json.dumps(test))
    assert sample.value == received["bits_per_second"] / 1e6
    assert not sample.warmed_up


def test_intervals_of_the_server_are_preferred() -> None:
    (sample,) = samples("iperf3", FOLDER / "server_output.json")
    rates = [
        interval["sum"]["bits_per_second"] / 1e6
        for interval in document("server_output.json")["server_output_json"]["intervals"]
    ]
    assert sample.intervals is not None
    # The last is a remainder. Bytes over time are the figure: they differ from the median by 11 %.
    assert sample.value == pytest.approx(fmean(rates[-1 - sample.intervals : -1]), rel=1e-4)
    assert "at the receiver" in detail(sample)["steady"]
    usual_mbps = median(rates[-1 - sample.intervals : -1])
    assert detail(sample)["transient_mbps"] > 1.4 * usual_mbps, "the first rate was far more"


def test_old_versions_give_udp_only_at_the_sender_and_its_loss_is_taken_off() -> None:
    test = document("udp.json")
    del test["end"]["sum_received"]
    test["end"]["sum"] |= {"bits_per_second": 80e6, "lost_percent": 25}
    (sample,) = samples("iperf3", json.dumps(test))
    assert sample.value == pytest.approx(60)


def test_a_paced_test_is_no_measurement_of_the_path() -> None:
    assert outcomes("iperf3", FOLDER / "paced.json") == [(1, f"{PACED} (-b or -R)")]
    (sample,) = samples("iperf3", FOLDER / "paced.json", force=True)
    assert detail(sample)["paced_at_mbps"] == 10.0
    test = document("paced.json")
    test["start"]["test_start"]["target_bitrate"] = 1e9  # far above: it did not hold back
    assert samples("iperf3", json.dumps(test))


@given(
    st.sampled_from(["target_bitrate", "fqrate", "fq_rate", "sock_bufsize"]),
    st.integers(1, 16),
    st.floats(1e8, 1e10),
    st.sampled_from([0.5, 0.95, 1.0, 1.2, 3.0]),
)
@patient
def test_each_limit_of_the_sender_paces_a_test_that_reaches_it(
    name: str, streams: int, limit_bps: float, asked: float
) -> None:
    """The limits are stated by stream; half of the rate that the test reached paced it, too."""
    test = json.loads(long_test([limit_bps * streams / 1e6] * 12))
    settings, rtt_us = test["start"]["test_start"], 40_000
    settings |= {"num_streams": streams, "target_bitrate": 0}
    where = settings if name in ("target_bitrate", "fqrate") else test["start"]
    per_stream = limit_bps * asked
    where[name] = per_stream / 8 * rtt_us / 1e6 if name == "sock_bufsize" else per_stream
    test["end"]["streams"] = [{"sender": {"min_rtt": rtt_us, "mean_rtt": 3 * rtt_us}}] * streams
    by = {"target_bitrate": "-b or -R", "sock_bufsize": "-w"}.get(name, "--fq-rate")
    found = outcomes("iperf3", json.dumps(test))
    if asked > 1.1:
        assert [type(each) for each in found] == [Sample]
    else:
        assert found == [(1, f"{PACED} ({by})")]
        (kept,) = samples("iperf3", json.dumps(test), force=True)
        assert detail(kept)["paced_at_mbps"] == pytest.approx(per_stream * streams / 1e6)


def test_a_servers_file_gives_the_same_direction_and_its_sending_side_nothing() -> None:
    (sample,) = samples("iperf3", FOLDER / "server_side.json", force=True)
    assert (sample.src, sample.dst) == ("aws:us-east-1", "gcp:us-east1")
    found = outcomes("iperf3", FOLDER / "server_side_reverse.json")
    assert found == [(1, iperf3.NO_RECEIVER)]


@pytest.mark.parametrize(
    ("name", "text", "meaning"),
    [
        ("refused", "unable to connect to server: Connection refused", "start `iperf3 -s`"),
        ("busy", "the server is busy running a test. try again later", "one test at a time"),
        ("interrupted", "the client has terminated", "interrupted before the end"),
    ],
)
def test_errors_in_the_output_are_told_with_their_meaning(
    name: str, text: str, meaning: str
) -> None:
    ((line, reason),) = skipped("iperf3", FOLDER / f"{name}.json")
    assert line == 1
    assert text in reason
    assert meaning in reason
    assert not samples("iperf3", FOLDER / f"{name}.json")


def test_documents_one_after_another_are_read_whether_pretty_or_one_a_line() -> None:
    expected = samples("iperf3", ONE) + samples("iperf3", TWO)
    lines = "".join(json.dumps(json.loads(text)) + "\n" for text in (ONE, TWO))
    assert samples("iperf3", ONE + TWO) == expected
    assert samples("iperf3", lines) == expected
    assert (
        samples("iperf3", "warning: UDP block size\n" + ONE + "iperf3: error - no error\n")
        == (expected[:1])
    )


def test_a_test_written_twice_counts_once_and_one_that_is_cut_off_is_refused() -> None:
    found = outcomes("iperf3", ONE + ONE)
    assert isinstance(found[0], Sample)
    assert found[1:] == [(ONE.count("\n") + 1, iperf3.SAME_TEST_AGAIN)]
    cut = ONE[: len(ONE) // 2].rstrip() + "\n"
    line = cut.count("\n") + 1
    with pytest.raises(FormatError, match=f"line 1 is cut off by another one on line {line}"):
        outcomes("iperf3", cut + TWO)
    with pytest.raises(FormatError, match="second document begins inside line"):
        outcomes("iperf3", ONE.rstrip() + TWO)


@patient
@given(st.integers(1, len(ONE.rstrip()) - 1))
def test_a_truncated_document_is_always_refused(length: int) -> None:
    with pytest.raises(FormatError):
        outcomes("iperf3", ONE[:length])


def test_several_hosts_in_one_file_need_force() -> None:
    other = document("two_streams.json")
    other["start"]["connecting_to"]["host"] = "192.0.2.9"
    content = ONE + json.dumps(other)
    with pytest.raises(FormatError, match="several hosts"):
        outcomes("iperf3", content)
    assert len(samples("iperf3", content, force=True)) == 2


def _with_keys_twice(name: str) -> str:
    """Return a test both ways as iperf3 3.7 to 3.10 write it."""
    return (FOLDER / name).read_text().replace("_bidir_reverse", "")


def test_directions_under_the_same_keys_are_those_of_their_senders() -> None:
    right = samples("iperf3", FOLDER / "bidir.json")
    twice = _with_keys_twice("bidir.json")
    assert samples("iperf3", twice) == right
    # The server's streams send the other way.
    at_server = twice.replace('"connecting_to"', '"accepted_connection"')
    for flag in ("true", "false"):
        at_server = re.sub(rf'"sender":\s*{flag}', f'"sender": not {flag}', at_server)
    at_server = at_server.replace("not true", "false").replace("not false", "true")
    ends = [(one.src, one.dst, one.detail) for one in samples("iperf3", at_server)]
    assert [end[:2] for end in ends] == [(one.src, one.dst) for one in right]
    means = [json.loads(end[2])["received_mbps"] for end in ends]
    assert means == [detail(one)["received_mbps"] for one in right]


def test_directions_that_nothing_tells_are_no_samples() -> None:
    for flag in ("true", "1"):
        unsaid = re.sub(
            r'"sender":\s*(true|false)', f'"sender": {flag}', _with_keys_twice("bidir.json")
        )
        (row,) = outcomes("iperf3", unsaid)
        assert isinstance(row, SkippedRow)
        assert "without their directions" in row.reason


def test_a_stream_of_events_is_put_together() -> None:
    test = document("two_streams.json")
    events = [
        {"event": "start", "data": test["start"]},
        *({"event": "interval", "data": interval} for interval in test["intervals"]),
        {"event": "end", "data": test["end"]},
    ]
    lines = [json.dumps(event) + "\n" for event in events]
    assert samples("iperf3", "".join(lines)) == samples("iperf3", TWO)
    with pytest.raises(FormatError, match="has no end"):
        outcomes("iperf3", "".join(lines[:-1]))
    failed = json.dumps({"event": "error", "data": "the server is busy running a test"})
    assert "one test at a time" in skipped("iperf3", lines[0] + failed)[0].reason


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1]\n", "holds what is no JSON object"),
        ('{"a": 1}\n', "not of iperf3"),
        ('{"start": {}, "end": {"x": NaN}}\n', "NaN, which is no JSON number"),
        ('{"start": -nano}\n', "not valid JSON at line 1, column 11"),
        ('{"start": ' + "[" * 100_000, "nests too deep"),
        ('{"start": ' + "9" * 5000 + "}", "document of line 1 holds"),
    ],
)
def test_json_that_is_not_of_iperf3_or_not_valid_is_refused(content: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        outcomes("iperf3", content)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"src": ""}, "--src"),
        ({"dst": "aws:us-east-1"}, "same region"),
        ({"dst": "us-east"}, "not provider:region"),
    ],
)
def test_regions_must_be_stated_and_differ(stated: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        outcomes("iperf3", ONE, **stated)


def _leaves(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(content, dict):
        return [path, *(p for k, v in content.items() for p in _leaves(v, (*path, k)))]
    if isinstance(content, list):
        return [path, *(p for k, v in enumerate(content) for p in _leaves(v, (*path, k)))]
    return [path]


_PATHS = {
    name: _leaves(document(name))[1:] for name in ("two_streams.json", "bidir.json", "udp.json")
}
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.text(max_size=9)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@patient
@given(st.data(), st.sampled_from(sorted(_PATHS)))
def test_any_value_anywhere_gives_a_sound_sample_a_reason_or_a_clear_error(
    data: st.DataObject, name: str
) -> None:
    test = document(name)
    for path in data.draw(st.lists(st.sampled_from(_PATHS[name]), max_size=3)):
        target: Any = test
        for key in path[:-1]:
            if not isinstance(target, dict | list) or (
                isinstance(target, list) != isinstance(key, int)
            ):
                break
            try:
                target = target[key]
            except (KeyError, IndexError):
                break
        else:
            if isinstance(target, dict) or (
                isinstance(target, list) and path[-1] in range(len(target))
            ):
                target[path[-1]] = data.draw(_json)
    try:
        found = outcomes("iperf3", json.dumps(test))
    except (InputError, FormatError):
        return
    for outcome in found:
        if isinstance(outcome, Sample):
            assert 0 < outcome.value <= 1e8
            assert outcome.duration_s is not None
            assert outcome.duration_s > 0


_rates = st.floats(1, 1e5)


@patient
@given(_rates, st.lists(st.floats(0.95, 1.05), min_size=16, max_size=40), st.data())
def test_the_steady_rate_ignores_any_transient_up_to_a_third(
    rate: float, noise: list[float], data: st.DataObject
) -> None:
    lead = data.draw(st.integers(1, len(noise) // 3))
    odd = st.floats(0, 0.5) | st.floats(1.5, 10)
    transient = data.draw(st.lists(odd, min_size=lead, max_size=lead))
    intervals = [Interval(1.0, rate * factor) for factor in (*transient, *noise)]
    steady = steady_state(intervals, warmed_up=False)
    assert steady is not None
    assert 0.95 * rate <= steady.mbps <= 1.05 * rate


def test_an_odd_second_at_the_end_of_the_transient_is_part_of_it() -> None:
    rates = [0.5, 0.5, 0.5, 0.25, 0.25, 2.0, *[1.0] * 18]
    steady = steady_state([Interval(1.0, rate) for rate in rates], warmed_up=False)
    assert steady is not None
    assert (steady.mbps, steady.intervals, steady.is_mean) == (1.0, 18, False)


def long_test(rates: list[float], *, udp: bool = False, sent: float = 0.0) -> str:
    """Return the document of iperf3 -J for a test with these rates, second by second."""
    mean = sum(rates) / len(rates) * 1e6
    total = {"seconds": len(rates), "bits_per_second": mean, "bytes": mean * len(rates) / 8}
    intervals = [{"sum": {"seconds": 1.0, "bits_per_second": rate * 1e6}} for rate in rates]
    settings = {"protocol": "UDP" if udp else "TCP", "num_streams": 1, "reverse": 1}
    start = {
        "connecting_to": {"host": "192.0.2.1"},
        "timestamp": {"timesecs": 1_795_000_000},
        "test_start": settings,
    }
    sent_sum = total | {"bits_per_second": sent * 1e6} if sent else total
    end = {"sum_sent": sent_sum, "sum_received": total | {"lost_percent": 1.0}}
    return json.dumps({"start": start, "intervals": intervals, "end": end})


@pytest.mark.parametrize(
    ("rates", "is_paced"),
    [
        ([99.6, 100.7, 99.6, 99.6, 100.7] * 3, True),  # -b 100M in writes of 128 KiB
        ([94.1] * 15, False),  # a shaper of 100 Mbit/s, less its headers
        ([70.0, *[100.0] * 14], False),  # slow start
        ([99.0, 101.5] * 8, False),
    ],
)
def test_a_round_rate_in_all_intervals_was_paced(rates: list[float], is_paced: bool) -> None:
    found = outcomes("iperf3", long_test(rates))
    assert [row.reason for row in found if isinstance(row, SkippedRow)] == [EVEN] * is_paced
    (sample,) = samples("iperf3", long_test(rates))
    assert sample.metric == ("aggregate_mbps" if is_paced else "per_flow_mbps")
    assert ("paced_at_mbps" in detail(sample)) is is_paced
    stated = json.loads(long_test(rates))
    stated["start"]["test_start"]["target_bitrate"] = 0
    (free,) = samples("iperf3", json.dumps(stated))
    assert (free.metric, "paced_at_mbps" in detail(free)) == ("per_flow_mbps", False)


@pytest.mark.parametrize(
    ("rates", "reasons"),
    [
        ([300.0, *[930.0, 940.0] * 4, *[0.0] * 5], [WENT_DOWN]),
        ([300.0, *[930.0, 940.0] * 4, 0.0, 0.0], []),
        ([300.0, *[930.0, 0.0, 0.0, 940.0] * 3, 0.0, 0.0, 0.0], []),  # it stalls
    ],
)
def test_a_path_that_went_down_in_the_test_has_no_rate(
    rates: list[float], reasons: list[str]
) -> None:
    found = outcomes("iperf3", long_test(rates))
    assert [row.reason for row in found if isinstance(row, SkippedRow)] == reasons
    (kept,) = samples("iperf3", long_test(rates), force=True)
    assert kept.value < 940


def test_what_was_omitted_counts_to_the_time_and_volume_of_a_fall() -> None:
    document = json.loads(long_test([800.0] * 100 + [400.0] * 60))
    for interval in document["intervals"][:4]:
        interval["sum"]["omitted"] = True
    document["start"]["test_start"]["omit"] = 4
    (sample,) = samples("iperf3", json.dumps(document))
    (change,) = changes_in(detail(sample))
    assert (change["at_s"], change["at_gb"]) == pytest.approx((100, 10), rel=1e-6)
    assert sample.warmed_up


@pytest.mark.parametrize("count", [20, pytest.param(60, marks=pytest.mark.thorough)])
def test_a_late_fall_survives_the_import(count: int) -> None:
    """Azure: from 800 to 400 Mbit/s after 100 s; the long mean would tell neither."""
    generator = random.Random(1)
    alarms = 0
    for _ in range(count):
        noise = [generator.gauss(1, 0.05) for _ in range(180)]
        rates = [(800 if k < 100 else 400) * noise[k] for k in range(180)]
        (sample,) = samples("iperf3", long_test(rates))
        assert sample.value == pytest.approx(400, rel=0.03)
        (change,) = detail(sample)["findings"]
        assert change["pattern"] == "drop"
        assert change["at_s"] == pytest.approx(100, abs=2)
        assert change["at_gb"] == pytest.approx(10, rel=0.03)
        assert sample.intervals == pytest.approx(80, abs=2)
        (clean,) = samples("iperf3", long_test([800 * x for x in noise]))
        alarms += "findings" in detail(clean)
    assert alarms <= 0.05 * count


def test_udp_is_what_arrived_in_the_best_five_seconds() -> None:
    rates = [500.0] * 10 + [900.0] * 5 + [100.0] * 5
    (sample,) = samples("iperf3", long_test(rates, udp=True, sent=1000.0))
    assert sample.value == pytest.approx(900)
    assert detail(sample)["mean_mbps"] == pytest.approx(500)
    assert detail(sample)["lower_bound"] is False
    (paced,) = samples("iperf3", long_test([300.0] * 8, udp=True, sent=300.0))
    assert detail(paced)["lower_bound"] is True


@pytest.mark.parametrize(
    ("asked", "granted", "window_mb"),
    [
        (0, 131_072, None),  # grows by itself, to a limit that the file does not have
        (0, 64 << 20, 33.554),  # begins larger than those of other hosts end
        (8 << 20, 16 << 20, 8.389),  # Linux doubles what is asked for
        (8 << 20, 425_984, 0.213),  # and grants no more than rmem_max
    ],
)
def test_the_window_of_the_sockets_is_stated_where_it_is_no_hosts_own(
    asked: int, granted: int, window_mb: float | None
) -> None:
    test = json.loads(long_test([900.0] * 12))
    test["start"] |= {"sock_bufsize": asked, "rcvbuf_actual": granted}
    (sample,) = samples("iperf3", json.dumps(test))
    assert detail(sample).get("window_mb") == window_mb

"""Files as other versions, systems and languages write them: right, or refused for a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.importers.options import BAD_REGION
from probes.samples import Sample
from tests.probes.importers.reading import FIXTURES, OPTIONS, outcomes, patient, reasons, samples
from tests.probes.importers.test_importers_iperf3 import long_test

ONE = (FIXTURES / "iperf3/one_stream.json").read_text()
A, B = "aws:us-east-1", "gcp:us-east1"


def figures(content: bytes | str, **options: Any) -> dict[str, float]:
    return {str(one.metric): one.value for one in samples("", content, **options)}


# ---- logs and wrappers -------------------------------------------------------------------------

WORDS = st.text(st.sampled_from("abcxyz-_./"), min_size=1, max_size=12)
PARTS = st.one_of(
    st.sampled_from(
        [
            "2026-11-01T10:00:0{}.5Z ",
            "[pod/x/iperf3] ",
            "stdout F ",
            "I1101 10:00:0{}.12       1 a.go:12] ",
            "\x1b[36mweb-1  |\x1b[0m ",
            "Nov  1 10:00:0{} vm-a iperf3[4711]: ",
            "[   1{}.345678] ",
            "1{}: ",
        ]
    ),
    WORDS.map(lambda word: f"{word} | "),
)


@given(st.lists(PARTS, min_size=1, max_size=3), st.sampled_from(["iperf3", "ping", "iperf"]))
@patient
def test_any_prefix_of_all_lines_is_left_out(parts: list[str], name: str) -> None:
    file = {"iperf3": "iperf3/one_stream.json", "ping": "ping/macos.txt"}
    text = (FIXTURES / file.get(name, "iperf/iperf3-client.txt")).read_text()
    prefix = "".join(parts)
    lines = text.splitlines(keepends=True)
    logged = "".join(prefix.format(n % 10, n % 10, n % 10) + line for n, line in enumerate(lines))
    values = [(one.metric, one.value, one.connections) for one in samples(name, text)]
    assert [(one.metric, one.value, one.connections) for one in samples("", logged)] == values


AT_S = 1_793_527_200.0  # 2026-11-01T10:00:00Z
STATED_S = OPTIONS.measured_at_s or 0.0
TIMES: dict[str, float] = {
    "2026-11-01T10:00:00.123456789Z ": AT_S + 0.123456,
    "2026-11-01T10:00:00.5Z stdout F ": AT_S + 0.5,
    "2026-11-01 11:00:00+0100 ": AT_S,
    "[2026-11-01T10:00:00Z] ": AT_S,
    "Sun Nov  1 10:00:00 2026 ": AT_S,
    "Nov  1 10:00:00 vm-a iperf3[4711]: ": STATED_S,
    "probe-1  | ": STATED_S,
}


@pytest.mark.parametrize("prefix", TIMES)
def test_the_time_in_a_prefix_counts_where_the_output_has_none(prefix: str) -> None:
    for name in ("iperf/iperf2-client.txt", "iperf3/one_stream.json", "ping/iputils.txt"):
        text = (FIXTURES / name).read_text()
        bare = samples("", text)
        found = samples("", "".join(prefix + line for line in text.splitlines(keepends=True)))
        has_time = bare[0].measured_at_s != STATED_S
        at_s = bare[0].measured_at_s if has_time else TIMES[prefix]
        assert [one._replace(measured_at_s=at_s) for one in bare] == found


@given(st.sampled_from([*TIMES]), st.lists(st.booleans(), min_size=40, max_size=40))
@patient
def test_lines_without_the_prefix_stay_as_they_are(prefix: str, has_prefix: list[bool]) -> None:
    lines = (FIXTURES / "ping/macos.txt").read_text().splitlines(keepends=True)
    mixed = "".join(
        (prefix if has or number == 0 else "") + line
        for number, (line, has) in enumerate(zip(lines, has_prefix, strict=False))
    )
    assert figures(mixed) == figures("".join(lines))


def test_output_within_json_and_between_lines_of_a_shell_is_found() -> None:
    (bare,) = samples("iperf3", ONE)
    docker = [{"log": line, "stream": "stdout"} for line in ONE.splitlines(keepends=True)]
    ansible = {"changed": True, "stdout": ONE, "stdout_lines": ONE.split("\n"), "rc": 0}
    for content in (
        "\n".join(map(json.dumps, docker)),
        json.dumps(ansible),
        json.dumps({"plays": [{"tasks": [{"hosts": {"a": ansible}}]}]}, indent=1),
        f"$ iperf3 -c 10.0.0.1 -J\n{ONE}+ exit 0\n",
        f"```json\n{ONE}\n```\n",
    ):
        assert samples("", content) == [bare]
    ping = (FIXTURES / "ping/iputils.txt").read_text()
    assert figures(json.dumps({"start": "2026-11-01", "stdout": ping})) == figures(ping)


@given(st.lists(st.sampled_from(["bits_per_second", "seconds", "x"]), min_size=1, unique=True))
@patient
def test_a_key_given_twice_never_loses_one_of_its_values(keys: list[str]) -> None:
    cells = ", ".join(f'"{key}": 1, "{key}": 2' for key in keys)
    for name, whole in (
        ("csv", f'[{{"src": "{A}", "dst": "{B}", "rtt_ms": 1, {cells}}}]'),
        ("mtr", f'{{"report": {{"mtr": {{"dst": "a"}}, "hubs": [{{"host": "a", {cells}}}]}}}}'),
        ("pscheduler", f'{{"succeeded": true, "roundtrips": [], {cells}}}'),
    ):
        with pytest.raises(FormatError, match="twice"):
            outcomes(name, whole)


# ---- iperf -------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=12, max_size=60), st.integers(50, 20_000))
@patient
def test_stalls_never_vanish(stalled: list[bool], mbps: int) -> None:
    assume(stalled.count(False) >= 5)
    rates = [0.0 if one else float(mbps) for one in stalled]
    (sample,) = samples("iperf3", long_test(rates), force=True)
    if sample.intervals is None:
        assert sample.value == pytest.approx(sum(rates) / len(rates))
        return
    # Slow start may take the first second that moves data, and stall after it.
    second = [number for number, one in enumerate(stalled) if not one][1]
    counted = rates[second:]
    share = counted.count(0.0) / len(counted)
    assert sample.intervals == len(counted)
    assert sample.value == pytest.approx(mbps * (1 - share), rel=0.0501)
    told = sample.read_detail()
    assert [one["pattern"] for one in told.get("findings", [])] == ["stall"] * (share > 0)
    error = (share / len(counted) / (1 - share)) ** 0.5
    assert told.get("mean_error", 0.0) == pytest.approx(error, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("odd", [1e999, 1e300])
def test_a_rate_that_is_none_is_told_as_one(odd: float) -> None:
    content = long_test([1.0] * 9 + [odd] * 9).replace("Infinity", "1e999").replace("NaN", "1e999")
    assert not [one for one in outcomes("iperf3", content) if isinstance(one, Sample)]


CSV = "202611011000{}0,192.0.2.10,{},198.51.100.20,{},3,0.0-10.0,1187940000,{}\n"
ENHANCED = "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,writecnt\n"


def test_iperf_2s_csv_tells_directions_and_protocols() -> None:
    out, back = CSV.format(0, 40000, 5001, 950_000_000), CSV.format(3, 5001, 40001, 470_000_000)
    found = [(one.src, one.value) for one in samples("iperf", out + back)]
    assert found == [(A, 950.0), (B, 470.0)]  # -r
    assert samples("iperf", out + back.replace("100030,", "100000,")) == []  # -d
    sent = "20261101100000,192.0.2.10,5001,198.51.100.20,5001,3,0.0-10.0,1312500,1050000\n"
    report = (
        "20261101100000,198.51.100.20,5001,192.0.2.10,5001,3,0.0-10.0,1299900,1040000,"
        "0.011,8,893,0.900,0\n"
    )
    (udp,) = samples("iperf", sent + report)
    assert (udp.metric, udp.value) == ("udp_mbps", 1.04)
    assert udp.read_detail()["loss_at_this_rate_pct"] == 0.9
    row = (
        "+0200:20250605191028.955,10.0.0.1,43380,10.0.0.2,6789,1,0.0{}10.0,{},{},-1,-1,429,-1,0,0\n"
    )
    for separator in "-,":  # until 2.1.9, and from 2.2.0 on
        (new,) = samples("", ENHANCED + row.format(separator, 1_250_000_000, 1_000_000_000))
        assert (new.value, new.measured_at_s) == (1000.0, 1749143428.0)


def test_iperf_2s_pacing_and_window_are_read_from_its_text() -> None:
    text = """Client connecting to 10.0.0.1, TCP port 5001 with pid 60030 (1/0 flows/load)
{}
TCP window size:  512 KByte {}
[  1] local 10.0.0.2 port 4 connected with 10.0.0.1 port 5001 {}on 2024-06-28 10:21:14.724 (UTC)
[  1] 0.00-10.02 sec   119 MBytes   99.5 Mbits/sec
"""
    asked, ct = "(WARNING: requested  256 KByte)", "(ct=20.1 ms) "
    (free,) = samples("iperf", text.format("Write buffer size: 131072 Byte", "(default)", ct))
    assert (free.value, free.measured_at_s) == (99.5, 1719570074.724)
    paced = "fair-queue socket pacing set to  100 Mbit/s"
    for told, option in (((paced, "(default)", ""), "--fq-rate"), (("", asked, ct), "-w")):
        (reason,) = reasons(outcomes("iperf", text.format(*told)))
        assert reason.endswith(f"({option})")


# ---- round trips -------------------------------------------------------------------------------

LINUX = """
64 字节,来自 10.0.0.1: icmp_seq={} ttl=57 时间={} 毫秒
已发送 4 个包, 已接收 3 个包, 25% packet loss

64 バイト応答 送信元 10.0.0.1: icmp_seq={} ttl=57 時間={}ミリ秒
送信パケット数 4, 受信パケット数 3, 25% packet loss

64 байт от 10.0.0.1: icmp_seq={} ttl=57 время={} мс
4 пакетов передано, 3 принято, 25% потеряно

64 octets de 10.0.0.1 : icmp_seq={} ttl=57 temps={} ms
4 paquets transmis, 3 reçus, 25,0 % paquets perdus

64 Bytes von 10.0.0.1: icmp_seq={} ttl=57 Zeit={} ms
4 Pakete übertragen, 3 empfangen, 25% packet loss

64 bytes desde 10.0.0.1: icmp_seq={} ttl=57 tiempo={} ms
4 paquetes transmitidos, 3 recibidos, 25% p perdidos
"""


@pytest.mark.parametrize("both", LINUX.strip().split("\n\n"))
def test_ping_of_linux_in_other_languages(both: str) -> None:
    reply, summary = both.split("\n")
    lines = [reply.format(n, ms) for n, ms in ((1, "30.0"), (2, "19.4"), (4, "19.6"))]
    text = "\n".join(
        ["PING 10.0.0.1 (10.0.0.1) 56(84)", *lines, "", "--- 10.0.0.1 ping ---", summary, ""]
    )
    found = figures(text)
    assert found == pytest.approx({"rtt_ms": 19.5, "loss_pct": 25.0, "jitter_ms": 0.1})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("From 10.1.0.2 icmp_seq=1 Frag needed and DF set (mtu = 1460)\n", "the MTU here is 1460"),
        ("ping: erreur locale: message trop long, mtu=1460\n", "ping with -s 1432 or less"),
        ("ping: sendto: Message too long\n", "too long for the path"),
        ("Packet needs to be fragmented but DF set.\n", "too long for the path"),
        ("Paket m\x81sste fragmentiert werden, DF-Flag ist jedoch gesetzt.\n", "too long for"),
        ("General failure.\n", "General failure"),
    ],
)
@pytest.mark.parametrize("lost", [0, 2])
def test_packets_that_could_not_leave_are_no_loss(lines: str, said: str, lost: int) -> None:
    linux = f"{3 + lost} packets transmitted, 0 received, +3 errors, 100% packet loss\n"
    windows = f"    Packets: Sent = {3 + lost}, Received = 0, Lost = {3 + lost} (100% loss),\n"
    ping = "PING 10.0.0.1 (10.0.0.1) 8972(9000) bytes of data.\n"
    for content in (
        f"{ping}{lines * 3}\n{linux}",
        f"{lines * 3}{ping}\n{linux}",  # the errors are not buffered
        f"Pinging 10.0.0.1 with 8972 bytes of data:\n{lines * 3}\n{windows}",
    ):
        found = outcomes("ping", content)
        told = [one.reason for one in found if not isinstance(one, Sample) and said in one.reason]
        assert len(told) == 3
        kept = [one for one in found if isinstance(one, Sample)]
        assert [(one.metric, one.value) for one in kept] == [("loss_pct", 100.0)] * bool(lost)
        assert [one.read_detail()["packets"] for one in kept] == [lost] * bool(lost)


def test_fping_and_mtr_in_all_their_forms() -> None:
    resp = '{{"resp": {{"host": "10.0.0.1", "seq": {}, "size": 64, "rtt": {}}}}}\n'
    told = {"host": "10.0.0.1", "xmt": 4, "rcv": 3, "loss": 25, "rttMin": 19, "rttAvg": 20}
    summary = json.dumps({"summary": told})
    each = "".join(resp.format(n, ms) for n, ms in enumerate((30.0, 19.4, 19.6)))
    right = pytest.approx({"rtt_ms": 19.5, "loss_pct": 25.0, "jitter_ms": 0.1})
    assert figures(each + '{"timeout": {"host": "10.0.0.1", "seq": 3}}\n' + summary) == right
    assert figures('{"vSum": {"host": "10.0.0.1", "values": [30.0, 19.4, null, 19.6]}}\n') == right
    assert figures("10.0.0.1 : 30.0 19.4 - 19.6\n") == right
    report = (
        "Start: 2026-11-01T10:00:00+0000\n"
        "HOST: vm-a              Loss%   Snt   Last   Avg  Best  Wrst StDev\n"
        "  1.|-- 10.1.1.1         0.0%    10    1.0   1.0   0.9   1.2   0.1\n"
        "  2.|-- {}        10.0%    10   20.0  20.6  19.9  21.2   0.4\n"
    )
    found = samples("", report.format("10.0.0.1"))
    assert {one.measured_at_s for one in found} == {1793527200.0}
    assert figures(report.format("10.0.0.1")) == {
        "rtt_ms": 20.6,
        "loss_pct": 10.0,
        "jitter_ms": 0.4,
    }
    assert samples("", report.format("???")) == []
    document = json.loads((FIXTURES / "mtr/report.json").read_text())
    assert samples("", json.dumps([document])) == samples("mtr", json.dumps(document))


# ---- tables, archives, monitoring --------------------------------------------------------------


@pytest.mark.parametrize(
    ("corner", "metric", "value"),
    [
        ("rtt_ms", "", 12.5),
        ("", "rtt_ms", 12.5),
        ("RTT (ms)", "rtt_ms", 12.5),
        ("µs", "rtt_us", 0.0125),
        ("Mbit/s", "aggregate_mbps", 12.5),
        ("ms", "rtt_us", None),
        ("RTT (us)", "rtt_ms", None),
        ("Gbit/s", "aggregate_mbps", None),
        ("MB/s", "aggregate_mbps", None),
    ],
)
def test_the_corner_of_a_matrix_tells_its_unit(
    corner: str, metric: str, value: float | None
) -> None:
    text = f"{corner},{A},{B}\n{A},0,12.5\n{B},,0\n"
    if value is None:
        with pytest.raises(InputError, match="and the corner of measurements says"):
            outcomes("", text, metric=metric)
        return
    (sample,) = samples("", text, metric=metric)
    assert (sample.src, sample.dst, sample.value) == (A, B, pytest.approx(value))  # type: ignore[comparison-overlap]


def test_matrices_may_be_turned_and_may_be_json() -> None:
    (sample,) = samples("", f"to\\from,{A},{B}\n{A},0,12.5\n{B},,0\n", metric="rtt_ms")
    assert (sample.src, sample.dst) == (B, A)
    nested = {"us-east-1": {"us-east-1": 5.1, "eu-west-1": 70.2}, "eu-west-1": {"us-east-1": 71}}
    for content in (nested, {"metadata": {"deprecated": False, "unit": {}}, "data": nested}):
        found = samples("", json.dumps(content), metric="rtt_ms", provider="aws")
        assert [(one.src, one.value) for one in found] == [(A, 70.2), ("aws:eu-west-1", 71.0)]
    odd = "from,x:a,x:b,note\nx:a,0,2,5\nx:b,3,0,\nmean,1,1,\n"
    read = outcomes("", odd, metric="rtt_ms")
    assert [one.dst for one in read if isinstance(one, Sample)] == ["x:b", "x:a"]
    assert reasons(read) == {BAD_REGION: 3}
    with pytest.raises(FormatError, match="holds no list of objects"):
        outcomes("", json.dumps({"columns": [A], "data": [[1]]}), metric="rtt_ms")


def perfkit(**more: Any) -> dict[str, Any]:
    labels = {"cloud": "GCP", "ip_type": "external", "sending_thread_count": "1"}
    labels |= {"sending_zone": "us-east1-b", "receiving_zone": "us-west1-a", **more}
    told = ",".join(f"|{key}:{value}|" for key, value in labels.items())
    fixed = {"metric": "Throughput", "value": 512.0, "unit": "Mbits/sec", "test": "iperf"}
    return {**fixed, "timestamp": 1.7e9, "labels": told, "metadata": {}}


def test_results_of_perfkit_in_lists_between_clouds_and_over_udp() -> None:
    (bare,) = samples("", json.dumps(perfkit()))
    assert (bare.src, bare.metric) == ("gcp:us-east1", "per_flow_mbps")
    turned = dict(reversed(perfkit().items()))
    for content in (json.dumps([perfkit()], indent=1), json.dumps(turned)):
        assert samples("", content) == [bare]
    ends = {"vm_1_cloud": "GCP", "vm_1_zone": "us-east1-b", "receiving_zone": "eastus-1"}
    (between,) = samples("", json.dumps(perfkit(**ends, vm_2_cloud="Azure", vm_2_zone="eastus-1")))
    assert (between.src, between.dst, between.dst_zone) == ("gcp:us-east1", "azure:eastus", "1")
    (udp,) = samples("", json.dumps(perfkit(protocol="UDP")))
    assert udp.metric == "udp_mbps"
    (only,) = reasons(outcomes("", json.dumps({**perfkit(), "unit": "furlongs"})))
    assert only == "a unit that relayd does not know"


def test_what_an_exporter_shows_is_read_as_an_answer_of_prometheus() -> None:
    text = (
        "# HELP rtt_seconds Round trip.\n# TYPE rtt_seconds gauge\n"
        'rtt_seconds{source="us-east-1",target="eu-west-1"} 0.0701 1793527200000\n'
        'rtt_seconds{source="eu-west-1",target="us-east-1"} 7.02e-2\n'
        "process_open_fds 12\n"
    )
    stated = {"columns": {"src": "source", "dst": "target"}, "metric": "rtt_s", "provider": "aws"}
    found = samples("", text, **stated)
    assert [(one.src, round(one.value, 6)) for one in found] == [(A, 70.1), ("aws:eu-west-1", 70.2)]
    assert found[0].measured_at_s == 1793527200.0
    with pytest.raises(FormatError, match=r"holds several metrics \(loss_ratio, rtt_seconds\)"):
        outcomes("", text + 'loss_ratio{source="us-east-1",target="eu-west-1"} 0.5\n', **stated)
    probe = "# TYPE probe_success gauge\nprobe_success 1\n"
    probe += 'probe_icmp_duration_seconds{phase="rtt"} 0.02\n'
    assert figures(probe) == {"loss_pct": 0.0, "rtt_ms": 20.0}


def test_graphs_with_marks_of_order_other_letters_and_parallel_lines() -> None:
    gml = "graph [\n{}{}{}]\n".format(
        '  node [ id 0 label "Zürich" ]\n',
        '  node [ id 1 label "B" ]\n',
        "  edge [ source 0 target 1 LinkSpeedRaw 1000000000.0 ]\n" * 2,
    )
    for content in (gml.encode(), gml.encode("utf-8-sig"), gml.encode("latin-1")):
        assert {one.value for one in samples("", content, provider="zoo")} == {2000.0}
    logged = "".join(f"web-1 | {line}" for line in gml.splitlines(keepends=True))
    assert {one.value for one in samples("", logged, provider="zoo")} == {2000.0}

"""Files as the documentation and the sources of tools say they are written, in several versions.

Each has the format that reads it, what is right, and options. Right are figures by metric; or words
of the reason of a skipped row, or of the error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

A, B = "aws:us-east-1", "gcp:us-east1"


class Documented(NamedTuple):
    """A file; ``right`` are figures, or words of a reason or an error."""

    name: str
    format: str
    content: str
    right: Mapping[str, Any] | str
    options: Mapping[str, Any] = MappingProxyType({})


NETPERF = "MIGRATED {} TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET{}\n"
STREAM = """Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    {}

131072  16384  16384    10.03     {}
"""
UTILISED = """Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % S      % S      us/KB   us/KB

131072  16384  16384    10.00      941.50   1.50     4.51     1.043   3.138
"""
RR = """Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  131072 1        1       10.00      50.00
16384  131072
"""
UDP = """Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

212992   65507   10.00      101525      0    5320.47
212992           10.00       91525           4796.40
"""
TCP_STREAM, TCP_RR = NETPERF.format("TCP STREAM", ""), "TCP REQUEST/RESPONSE"
KEYS = "THROUGHPUT={}\nTHROUGHPUT_UNITS={}\nELAPSED_TIME=10.00\n"

SOCKPERF = """sockperf: == version #{} ==
sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)

[ 0] IP = 10.1.0.7        PORT = 11111 # {}
sockperf: Warmup stage (sending a few dummy messages)...
sockperf: Starting test...
sockperf: Test end (interrupted by timer)
sockperf: Test ended
"""
VALID = "sockperf: [Valid Duration] RunTime=9.550 sec; SentMessages=108; ReceivedMessages=108\n"
ETHR = """Connecting to host [10.1.0.11], port 9999
[  6] local 10.1.0.4 port 44160 connected to 10.1.0.11 port 9999
- - - - - - - - - - - - - - - - - - - - - - -
[ ID]   Protocol    Interval      Bits/s
"""
ETHR_LATENCY = """Using destination: 10.1.0.11, ip: 10.1.0.11, port: 8888
-----------------------------------------------------------
     Avg      Min      50%      90%      95%      99%    99.9%   99.99%      Max
20.100ms 19.900ms 20.000ms 20.300ms 20.400ms 21.000ms 21.000ms 21.000ms 21.000ms
20.300ms 19.900ms 20.000ms 20.300ms 20.400ms 21.000ms 21.000ms 21.000ms 21.000ms
Ethr done, duration: 2s.
"""


def seconds(*rates: str, protocol: str = "TCP", ids: tuple[str, ...] = ("  6",)) -> str:
    """Return ethr's lines of seconds, with one rate for each id."""
    return "".join(
        f"[{one}]     {protocol}      {at:03}-{at + 1:03} sec   {rate}\n"
        for at, rate in enumerate(rates)
        for one in ids
    )


def atlas(**more: Any) -> dict[str, Any]:
    """Return a result of RIPE Atlas."""
    times = [{"rtt": 88.3}, {"rtt": 88.4}, {"x": "*"}]
    told = {"fw": 5080, "af": 4, "prb_id": 6001, "msm_id": 1000001, "type": "ping", "dup": 0}
    told |= {"dst_addr": "203.0.113.9", "timestamp": 1795600000, "result": times}
    return {**told, "sent": 3, "rcvd": 2, "min": 88.3, "max": 88.4, "avg": 88.35, **more}


def globalping(*probes: str, **more: Any) -> str:
    """Return a measurement of Globalping from probes in cities."""
    result = {
        "status": "finished",
        "rawOutput": "PING 203.0.113.9 (203.0.113.9) 56(84) bytes of data.",
        "timings": [{"ttl": 60, "rtt": 88.3}, {"ttl": 60, "rtt": 88.4}, {"ttl": 60, "rtt": 88.6}],
        "stats": {
            "min": 88.3,
            "avg": 88.43,
            "max": 88.6,
            "total": 3,
            "loss": 0,
            "rcv": 3,
            "drop": 0,
        },
    }
    found = [{"probe": {"city": one, "network": "AWS"}, "result": result} for one in probes]
    told = {
        "id": "x",
        "type": "ping",
        "status": "finished",
        "createdAt": "2026-11-01T10:00:00.000Z",
    }
    told |= {"target": "203.0.113.9"}
    more = {"probesCount": len(probes), "results": found, **more}
    return json.dumps({**told, **more})


SERIES = '"Time","us-east-1 -> eu-west-1"\n"2026-11-25 10:00:00","{}"\n"2026-11-25 10:01:00",""\n'
LABELS = 'Time,"rtt{{dst=""aws:eu-west-1"", src=""aws:us-east-1""}}"\n1795600000000,{}\n'
AWS, ROWS = {"provider": "aws"}, f"| src | dst | RTT |\n|---|:-:|--:|\n| {A} | {B} | {{}} |\n"
PAGE = "<!DOCTYPE html><html><body><table>{}</table></body></html>"
HTML_ROWS = "<tr><th>src<th>dst<th>rtt_ms</tr><tr><td>{}<td>{}<td>{}</tr>"
ASKS = "a guess: relayd import measurements --columns "

FILES = [
    Documented(*one)
    for one in (
        (
            "tcp stream",
            "netperf",
            TCP_STREAM + STREAM.format("10^6bits/sec", "941.50"),
            {"per_flow_mbps": 941.5},
        ),
        (
            "netperf 2.4",
            "netperf",
            "TCP STREAM TEST from 0.0.0.0 port 0 AF_INET to h port 0 AF_INET\n"
            + STREAM.format("10^6bits/sec", "941.50"),
            {"per_flow_mbps": 941.5},
        ),
        (
            "-f g",
            "netperf",
            TCP_STREAM + STREAM.format("10^9bits/sec", "9.42"),
            {"per_flow_mbps": 9420.0},
        ),
        ("-f M", "netperf", TCP_STREAM + STREAM.format("MBytes  /sec", "112.00"), "does not know"),
        (
            "-f M, newer",
            "netperf",
            TCP_STREAM + STREAM.format("MBytes/sec", "112.00"),
            {"per_flow_mbps": 112 * 8 * 1.048576},
        ),
        ("-c -C", "netperf", TCP_STREAM + UTILISED, {"per_flow_mbps": 941.5}),
        (
            "maerts",
            "netperf",
            NETPERF.format("TCP MAERTS", "") + STREAM.format("10^6bits/sec", "80.00"),
            {"per_flow_mbps": 80.0, "src": B},
        ),
        ("udp stream", "netperf", NETPERF.format("UDP STREAM", "") + UDP, {"udp_mbps": 4796.4}),
        (
            "udp cut off",
            "netperf",
            NETPERF.format("UDP STREAM", "") + UDP.rpartition("212992")[0],
            "told",
        ),
        ("tcp rr", "netperf", NETPERF.format(TCP_RR, " : first burst 0") + RR, {"rtt_ms": 20.0}),
        (
            "udp rr",
            "netperf",
            NETPERF.format("UDP REQUEST/RESPONSE", " : demo : first burst 0") + RR,
            {"rtt_ms": 20.0},
        ),
        ("burst", "netperf", NETPERF.format(TCP_RR, " : first burst 4") + RR, "several requests"),
        ("crr", "netperf", NETPERF.format("TCP Connect/Request/Response", "") + RR, "handshake"),
        (
            "-k",
            "netperf",
            TCP_STREAM + KEYS.format("941.50", "10^6bits/s"),
            {"per_flow_mbps": 941.5},
        ),
        (
            "-k, two",
            "netperf",
            (KEYS.format("941.50", "10^6bits/s") + "PROTOCOL=TCP\n") * 2,
            {"per_flow_mbps": 941.5},
        ),
        ("-k without a protocol", "netperf", KEYS.format("941.50", "10^6bits/s"), "add PROTOCOL"),
        (
            "-k of rr",
            "netperf",
            KEYS.format("50.00", "Trans/s") + "RT_LATENCY=20000.000\nMEAN_LATENCY=20100.00\n",
            {"rtt_ms": 20.0},
        ),
        (
            "-k of udp",
            "netperf",
            KEYS.format("941.50", "10^6bits/s") + "PROTOCOL=UDP\n",
            "not what arrived",
        ),
        (
            "-o",
            "netperf",
            TCP_STREAM
            + "Throughput,Throughput Units,Elapsed Time (sec)\n941.50,10^6bits/s,10.00\n",
            {"per_flow_mbps": 941.5},
        ),
        (
            "-o of rr",
            "netperf",
            NETPERF.format(TCP_RR, "")
            + "Throughput,Throughput Units,Mean Latency Microseconds\n50.00,Trans/s,20100.00\n",
            {"rtt_ms": 20.1},
        ),
        ("nothing below", "netperf", TCP_STREAM, "neither a rate"),
        (
            "ping-pong",
            "sockperf",
            SOCKPERF.format("3.10-0.git", "TCP")
            + VALID
            + "sockperf: Summary: Latency is 44210.350 usec\n",
            {"rtt_ms": 88.4207},
        ),
        (
            "older",
            "sockperf",
            SOCKPERF.format("2.5.", "UDP") + "sockperf: Summary: Latency is 10000.000 usec\n",
            {"rtt_ms": 20.0},
        ),
        (
            "--full-rtt",
            "sockperf",
            SOCKPERF.format("3.10", "TCP") + "sockperf: Summary: Round trip is 20000.000 usec\n",
            {"rtt_ms": 20.0},
        ),
        (
            "throughput",
            "sockperf",
            SOCKPERF.format("3.10", "TCP")
            + "sockperf: Summary: BandWidth is 100.000 MBps (800.000 Mbps)\n",
            {"per_flow_mbps": 838.8608},
        ),
        (
            "throughput -g",
            "sockperf",
            SOCKPERF.format("3.10", "TCP")
            + "sockperf: Summary: BandWidth is 0.100 GBps (0.800 Gbps)\n",
            {"per_flow_mbps": 838.8608},
        ),
        (
            "precise",
            "sockperf",
            SOCKPERF.format("3.10", "TCP")
            + "sockperf: Summary: BandWidth is 100.000000000 GBps (800.000000000 Gbps)\n",
            {"per_flow_mbps": 838.8608},
        ),
        (
            "udp throughput",
            "sockperf",
            SOCKPERF.format("3.10", "UDP")
            + "sockperf: Summary: BandWidth is 100.000 MBps (800.000 Mbps)\n",
            "not what arrived",
        ),
        ("cut off", "sockperf", SOCKPERF.format("3.10", "UDP"), "neither a rate"),
        (
            "both",
            "qperf",
            "tcp_bw:\n    bw  =  540 MB/sec\ntcp_lat:\n    latency  =  44.2 ms\n",
            {"per_flow_mbps": 4320.0, "rtt_ms": 88.4},
        ),
        (
            "-v",
            "qperf",
            "tcp_bw:\n    bw    =  1.09 GB/sec\n    time  =  2 sec\n",
            {"per_flow_mbps": 8720.0},
        ),
        ("bits", "qperf", "tcp_bw:\n    bw  =  8.7 Gb/sec\n", {"per_flow_mbps": 8700.0}),
        (
            "udp",
            "qperf",
            "udp_bw:\n    send_bw  =  600 MB/sec\n    recv_bw  =  500 MB/sec\n",
            {"udp_mbps": 4000.0},
        ),
        ("rdma", "qperf", "rc_bw:\n    bw  =  6 GB/sec\n", "whether it used TCP or UDP"),
        (
            "one stream",
            "ethr",
            ETHR + seconds(*["9.38G"] * 10) + "Ethr done, duration: 10s.\n",
            {"per_flow_mbps": 9380.0},
        ),
        (
            "streams",
            "ethr",
            ETHR
            + "".join(
                seconds(*["100.00M"] * 10, ids=("  6", "  7"))
                + seconds(*["200.00M"] * 10, ids=("SUM",))
            ),
            {"aggregate_mbps": 200.0},
        ),
        (
            "sums alone",
            "ethr",
            ETHR + seconds(*["200.00M"] * 10, ids=("SUM",)),
            "number of streams",
        ),
        ("udp", "ethr", ETHR + seconds("200.00M", "200.00M", protocol="UDP"), "not what arrived"),
        ("latency", "ethr", ETHR_LATENCY, {"rtt_ms": 20.2}),
        (
            "its log",
            "ethr",
            "".join(
                json.dumps(
                    {"Time": "2026-11-01T10:00:00Z", "Title": "", "Type": "INFO", "Message": line}
                )
                + "\n"
                for line in (ETHR + seconds(*["9.38G"] * 10)).splitlines()
            ),
            {"per_flow_mbps": 9380.0, "at_s": 1793527200.0},
        ),
        ("nothing below", "ethr", ETHR, "neither a rate"),
        (
            "list",
            "atlas",
            json.dumps([atlas()], indent=1),
            {"loss_pct": 100 / 3, "rtt_ms": 88.4, "at_s": 1795600000.0},
        ),
        (
            "lines",
            "atlas",
            json.dumps(atlas(msm_name="Ping", lts=20)) + "\n",
            {"loss_pct": 100 / 3, "rtt_ms": 88.4},
        ),
        (
            "nothing back",
            "atlas",
            json.dumps([atlas(rcvd=0, avg=-1, min=-1, max=-1, result=[{"x": "*"}] * 3)]),
            {"loss_pct": 100.0},
        ),
        (
            "errors",
            "atlas",
            json.dumps([atlas(rcvd=0, avg=-1, result=[{"error": "connect failed"}] * 3)]),
            {"loss_pct": 100.0},
        ),
        (
            "traceroute",
            "atlas",
            json.dumps([{"prb_id": 1, "type": "traceroute", "result": []}]),
            "other than a ping",
        ),
        ("probes", "atlas", json.dumps([atlas(), atlas(prb_id=6002)]), "tests of several hosts"),
        (
            "one probe",
            "globalping",
            globalping("Ashburn"),
            {"loss_pct": 0.0, "rtt_ms": 88.5, "at_s": 1793527200.0},
        ),
        ("probes", "globalping", globalping("Ashburn", "Dublin"), "tests of several hosts"),
        ("mtr", "globalping", globalping("Ashburn", type="mtr"), "other than a ping"),
        ("no results", "globalping", globalping(status="in-progress"), "other than a ping"),
        ("units", "csv", SERIES.format("68.1 ms"), {"rtt_ms": 68.1}, {**AWS, "metric": "rtt_ms"}),
        (
            "seconds",
            "csv",
            SERIES.format("0.0681 s"),
            {"rtt_ms": 68.1},
            {**AWS, "metric": "rtt_ms"},
        ),
        (
            "microseconds",
            "csv",
            SERIES.format("68100 µs"),
            {"rtt_ms": 68.1},
            {**AWS, "metric": "rtt_ms"},
        ),
        (
            "bytes",
            "csv",
            SERIES.format("100 MB/s"),
            {"per_flow_mbps": 800.0},
            {**AWS, "metric": "per_flow_mbps"},
        ),
        (
            "another unit",
            "csv",
            SERIES.format("100 MB/s"),
            "is not a number",
            {**AWS, "metric": "rtt_ms"},
        ),
        ("without --metric", "csv", SERIES.format("68.1 ms"), "--metric is needed", AWS),
        (
            "labels",
            "csv",
            LABELS.format("68.1"),
            {"rtt_ms": 68.1, "at_s": 1795600000.0},
            {"metric": "rtt_ms"},
        ),
        (
            "semicolons",
            "csv",
            "src;dst;rtt_ms\naws:us-east-1;gcp:us-east1;68.1\n",
            {"rtt_ms": 68.1},
        ),
        (
            "decimal commas",
            "csv",
            "src;dst;rtt_ms\naws:us-east-1;gcp:us-east1;68,1\n",
            "rtt_ms is not a number",
        ),
        ("tabs", "csv", f"src\tdst\trtt_ms\n{A}\t{B}\t68.1\n", {"rtt_ms": 68.1}),
        (
            "markdown",
            "csv",
            "# Round trips\n\n" + ROWS.replace("RTT", "rtt_ms").format("68.1 ms") + "\nAs seen.\n",
            {"rtt_ms": 68.1},
        ),
        (
            "markdown of other names",
            "csv",
            ROWS.replace("src", "From").format("68.1 ms"),
            ASKS + "src=From,dst=dst,rtt_ms=RTT",
        ),
        (
            "markdown matrix",
            "csv",
            f"| ms | {A} | {B} |\n|--|--|--|\n| {A} | | 68.1 |\n| {B} | | |\n",
            {"rtt_ms": 68.1},
            {"metric": "rtt_ms"},
        ),
        ("page", "csv", PAGE.format(HTML_ROWS.format(A, B, "68.1 ms")), {"rtt_ms": 68.1}),
        (
            "page with rows",
            "csv",
            PAGE.format("<thead><tr><th>x</th></tr></thead>"),
            "no table with a header and rows",
        ),
        (
            "page with merged cells",
            "csv",
            PAGE.format(HTML_ROWS.format(A, B, 1) + "<tr><td colspan=3>x</tr>"),
            {"rtt_ms": 1.0},
        ),
        (
            "own names",
            "csv",
            "from,to,latency (us)\nus-east-1,eu-west-1,68100\n",
            ASKS + "'src=from,dst=to,rtt_us=latency (us)' --provider PROVIDER",
        ),
        (
            "one pair",
            "csv",
            "when,bandwidth_gbps\n2026-11-01,4.8\n",
            ASKS + "measured_at=when,per_flow_gbps=bandwidth_gbps --src PROVIDER:REGION --dst",
            {"src": "", "dst": ""},
        ),
        (
            "price list",
            "",
            '"FormatVersion","v1.0"\n"Disclaimer","x"\n',
            "relayd data catalogue import",
        ),
        (
            "prices in JSON",
            "",
            '{\n  "formatVersion" : "v1.0",\n  "offerCode" : "AmazonEC2"}',
            "relayd data catalogue import",
        ),
        (
            "prices of Azure",
            "",
            '{"BillingCurrency":"USD","Items":[]}',
            "relayd data catalogue import",
        ),
        ("prices of Google", "", '{"skus": [{"name": "x"}]}', "relayd data catalogue import"),
        (
            "cost and usage report",
            "",
            "identity/LineItemId,lineItem/UsageType\n1,USE1\n",
            "relayd plan shuffle",
        ),
        (
            "cost and usage report 2",
            "",
            "bill_type,line_item_usage_type\n1,USE1\n",
            "relayd plan shuffle",
        ),
        ("FOCUS", "", "BilledCost,ChargeCategory,RegionId\n1,Usage,x\n", "relayd plan shuffle"),
        (
            "event log",
            "",
            '{"Event":"SparkListenerLogStart","Spark Version":"3.5.1"}\n',
            "relayd plan shuffle",
        ),
        (
            "SNDlib",
            "",
            "?SNDlib native format; type: network; version: 1.0\n",
            "relayd plan shuffle",
        ),
        (
            "SNDlib's XML",
            "",
            '<?xml version="1.0"?>\n<network xmlns="http://sndlib.zib.de/network">',
            "relayd plan shuffle",
        ),
    )
]

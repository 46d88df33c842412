"""Kinds of files, told by their first bytes: one table of all that are recognised.

A kind names tool and variation, so that a refusal says what was seen. Kinds that nothing reads
stand in it with what to do instead.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from planner.model.errors import FormatError
from probes.importers.text import LogPrefix, log_prefixes, logged_text, refuse_nul


class FileKind(NamedTuple):
    """A kind of file: what it is, the format that it belongs to, and what tells it.

    ``reader`` is a module and a function; where the format is ``-``, nothing reads it, and it is
    what to do instead. The first kind counts whose ``mark``, a pattern, is in the first bytes.
    """

    what: str
    format: str
    reader: str
    mark: str


def _kinds(text: str) -> tuple[FileKind, ...]:
    lines = re.sub(r"\n {4}", "", text).strip().split("\n")
    return tuple(FileKind(*re.split("  +", line, maxsplit=3)) for line in lines)


# A line has the fields of FileKind, with two spaces between; a mark may go on in lines of its own.
KINDS = _kinds(r"""
compressed with gzip  -  Decompress it first: gunzip FILE.  \A\x1f\x8b
compressed with zstd  -  Decompress it first: zstd -d FILE.  \A\x28\xb5\x2f\xfd
compressed with xz  -  Decompress it first: unxz FILE.  \A\xfd7zXZ\x00
compressed with bzip2  -  Decompress it first: bunzip2 FILE.  \ABZh\d1AY&SY
a zip archive or a spreadsheet  -  Extract it, or save it as CSV.  \APK\x03\x04
an SQLite database  -  Databases are named with --db.  \ASQLite format 3\x00
UTF-16  -  Save it as UTF-8 (in PowerShell: Out-File -Encoding utf8).
      \A(?:\xff\xfe|\xfe\xff|(?:[ -~\s]\x00){4}|(?:\x00[ -~\s]){4})
an RRD file  -  Give what `rrdtool fetch FILE AVERAGE` prints.  \ARRD\x00
a capture of packets  -  Import a test's output.  \A(?:\xd4\xc3\xb2\xa1|\xa1\xb2\xc3\xd4|\n\r\r\n)
a web page  -  Download the file itself.  (?i)\A\s*<(?:!doctype html|html)
Skyplane's price file, which holds no measurement  -  See catalogues.  \Asrc,dest,src_tier,dest_
mtr's CSV (-C)  -  Run `mtr --json -c 20 HOST`.  \AMtr_Version,
traceroute's output  -  Run `ping -c 20 HOST`.  (?mi)^(?:traceroute6? to |tracing route to )
netperf's text  -  Write its figures as CSV.  (?m)^(?:MIGRATED )?(?:TCP|UDP|OMNI) .{0,30}TEST from
pScheduler's text  -  Add --format json.  (?m)^\* Stream ID \d|^ *Interval +Throughput +Retransmits
esmond's list of measurements, without values  -  Fetch the base-uri of an event type.
      \A\s*[\[{](?s:.*?)"event-types"\s*:
a Parquet file  parquet  parquet.read  \APAR1
Skyplane's raw throughput file  skyplane-throughput  skyplane.read_throughput
      \A(?=.*\bsrc_region\b)(?=.*\bdst_region\b).*\bthroughput_rec(?:ei|ie)ved\b
Skyplane's raw latency file  skyplane-latency  skyplane.read_latency
      \A(?=.*\bsrc_region\b)(?=.*\bdst_region\b).*\bavg_rtt\b
a table of measurements (CSV)  csv  csv_samples.read
      (?i)\A\s*(?=(?:[^\n]*,)?[ "]*src[ "\r]*[,\n])(?:[^\n]*,)?[ "]*dst[ "\r]*(?:[,\n]|\Z)
what an exporter of Prometheus shows  blackbox  blackbox.read_text  \A\s*# (?:HELP|TYPE) \w
an answer of Prometheus  blackbox  blackbox.read
      \A\s*\{\s*(?:"status"\s*:\s*"(?:success|error)"|"data"\s*:\s*\{\s*"resultType")
mtr's text report  mtr  mtr.read_text  (?m)^HOST: .*Loss% +Snt
mtr's JSON (-j)  mtr  mtr.read  \A[\s\[]*\{\s*"report"\s*:\s*\{\s*"mtr"
results of PerfKitBenchmarker  perfkit  perfkit.read
      \A[\s\[]*\{(?=(?:[^{}]|\{[^{}]*\})*"test":)(?=(?:[^{}]|\{[^{}]*\})*"unit":)
    (?:[^{}]|\{[^{}]*\})*"metric":
a time series of esmond  pscheduler  pscheduler.read_series  \A\s*\[\s*\{\s*"(?:ts|val)"\s*:
results of pScheduler (perfSONAR)  pscheduler  pscheduler.read
      \A\s*[\[{](?s:.*?)"(?:throughput-bits|roundtrips|packets-sent|result-merged|pscheduler|succeeded)"\s*:
iperf3's JSON  iperf3  iperf3.read
      \A(?:warning:.*\s+)?[\s\[]*\{(?:\s*"error"\s*:|(?s:.*?)"(?:start"\s*:\s*\{
    |intervals"\s*:\s*\[|event"\s*:\s*"(?:start|interval|end|error)"))
Smokeping's data as rrdtool prints them  smokeping  smokeping.read
      \A\s*(?:\w+ +){0,3}loss +median +ping1 ?
a GML file  graph  graphs.read  \A(?:\s*(?:Creator|Version) .*)*\s*graph\s*\[
a GraphML file  graph  graphs.read  \A\s*(?:<[?!][^>]*>\s*)*<graphml
output of hping3  ping  ping.read  (?m)^HPING |^--- .*hping statistic ---
output of psping  ping  ping.read  (?m)^PsPing v|^TCP connect statistics for ?
output of paping  ping  ping.read  (?m)time=\S+ protocol=|^\s*Attempted = ?
output of tcping  ping  ping.read  (?mi)^(?:Probing \S+:\d+/tcp - |Ping tcp://|TCPinging
    |seq \d+: (?:tcp|no) response|--- .* tcping statistics ---)
fping's JSON (-J)  ping  ping.read_json
      \A\s*\{\s*"(?:resp|timeout|summary|vSum|intSum|alive|unreachable)"\s*:\s*\{[^{}]*"host"
output of fping  ping  ping.read  (?m)^(?:\[[\d.]+\] )?\S+ +: (?:\[\d+\], |xmt/rcv/%
    |(?:[\d.]+|-)(?: (?:[\d.]+|-))*$)|^(?!Network )\S+ is (?:alive|unreachable)\b
output of ping of Windows  ping  ping.read  (?m)^\S.*[=<] ?\d+ ?[^\s\d=<]{1,8} TTL=\d+\s*$
    |^Pinging .* with \d+ bytes of data|^ +[^=\d]*= \d+[^=\d.]+= \d+[^=\d.]+= \d+ *(?:\(|\r?$)
output of ping  ping  ping.read  (?m)^(?:PING6?[ (]|--- .* ping6? statistics ---|ping6?: )
iperf 2's CSV (-y C)  iperf  iperf_text.read_csv
      \A(?:time,srcaddress,|(?:[+-]\d{4}:)?\d{14}[\d.+-]{0,12},[^,\s]*,\d+,[^,\s]*,\d+,-?\d+,[\d.]+[-,][\d.]+,)
iperf's text output  iperf  iperf_text.read  (?m)^(?:Connecting to host|\[ ID\] Interval
    |Client connecting to|Server listening on|\[ *\d+\] local \S+ port|iperf3: error - )
nuttcp's output  nuttcp  nuttcp.read  (?m)^(?:nuttcp-[tr]: | *[\d.]+ MB / +[\d.]+ sec = |megabytes=)
""")
GUESSES = _kinds(r"""
JSON of no tool that relayd knows  csv  csv_samples.read_json  \A\s*[\[{]
a table of no tool that relayd knows  csv  csv_samples.read  \A\s*\S?[^\n]*[,;\t].*\n
""")
"""Of files that may be of any format that a user names."""
FORMATS = {kind.format: kind for kind in KINDS if kind.format != "-"}
"""Formats, as the command line spells them, and the last kind of each."""
PREFIXED_BYTES = 8192
"""First bytes of a file, by which it is recognised behind a log's prefix."""
_JSON = re.compile(r"""(?m)^(?=[\[{]\s*["{])""")
_VERSIONS = {
    "iperf3": r'"iperf (3[\d.]+)',
    "iperf": r"(?m)^iperf (3[\d.]+)",
    "nuttcp": r"(?m)^nuttcp-[tr]: v([\d.]+)",
    "perfkit": r"perfkitbenchmarker_version\W+v?(\d[\w.]*)",
}


def identified(head: bytes, name: str, wanted: str = "") -> tuple[FileKind, str, LogPrefix | None]:
    """Say what a file is: its kind, that in words, and the log's prefix to each line.

    ``wanted`` is the format that a user has named, if any.

    Raises
    ------
    FormatError
        If it is empty, of a kind that nothing reads, plainly of another format than the one that
        was named, or of no known kind.
    """
    if not head:
        raise FormatError(name, "is empty", remedy="Was the tool's output written to it?")
    text = head.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    kind, prefix = _kind_in_log(head)
    guess = _kind(text, GUESSES)[0]
    if kind is None and guess and wanted in ("", guess.format):
        kind = guess
    kind = kind or FORMATS.get(wanted)
    if kind is None:
        remedy = f"Name its format: {', '.join(FORMATS)}."
        problem = "is of no kind that relayd recognises"
        raise FormatError(name, problem, value=text.lstrip()[:60], remedy=remedy)
    version = re.search(_VERSIONS.get(kind.format, "(?!)"), text)
    what = f"{kind.what}, version {version[1]}" if version else kind.what
    if kind.format == "-":
        raise FormatError(name, f"is {what}", remedy=kind.reader)
    if kind.format != "parquet":
        refuse_nul(head, name)
    if wanted and kind.format != wanted:
        problem = f"is {what}, which the format {wanted} does not read"
        remedy = f"Use `relayd import {kind.format}`, or name no format."
        raise FormatError(name, problem, remedy=remedy)
    return kind, what, None if kind.format == "parquet" else prefix


def _kind_in_log(head: bytes) -> tuple[FileKind | None, LogPrefix | None]:
    """Find the kind of a file, behind what a log has put before its lines, or a few of its own.

    The prefix counts behind which a tool's output begins, else one behind which there is any.
    """
    found: tuple[FileKind | None, LogPrefix | None] = None, None
    head = head.removeprefix(b"\xef\xbb\xbf")
    for prefix in log_prefixes(head):
        match = prefix.pattern.match
        lines = head[: PREFIXED_BYTES if prefix.pattern.pattern else None].split(b"\n")
        bare = [line[m.end() :] if (m := match(line)) else line for line in lines]
        text = b"\n".join(bare).decode("latin-1")
        kind, at = _kind(text)
        if kind is None and (begun := _JSON.search(text)):
            kind, at = _kind(text[begun.start() :])[0], begun.start()
            prefix = prefix._replace(skipped=text.count("\n", 0, begun.start()))
        if kind and (not text[:at].strip() or found[0] is None):
            found = kind, prefix if prefix.pattern.pattern or prefix.skipped else None
        if kind and not text[:at].strip():
            break
    if found[0] is None and (logged := logged_text(head))[0].strip():
        return _kind(logged[0].decode("latin-1"))[0], logged[1]
    return found


def _kind(text: str, kinds: tuple[FileKind, ...] = KINDS) -> tuple[FileKind | None, int]:
    """Return the first kind whose mark is in a text, and its place."""
    marks = ((kind, re.search(kind.mark, text)) for kind in kinds)
    return next(((kind, mark.start()) for kind, mark in marks if mark), (None, 0))

"""A trial of a plan with iperf3: all lanes at once, compared with the prediction."""

from __future__ import annotations

from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.text import addresses, by_number, header, lane_words, script

# MAX_STREAMS of iperf3's source, src/iperf.h (3.12 to 3.19; read November 2026).
MOST_STREAMS = 128
SECONDS = 30
# Left out at the beginning, and not part of the SECONDS.
OMITTED_S = 5


def iperf3(emission: Emission) -> str:
    """Return a script for the source VMs.

    Destination VMs run one server for each port, which the comments list. A lane with more
    connections than iperf3 has in one process is cut to that, and says so.
    """
    notes = ["On each source VM: sh FILE. First, in this order, on"]
    for lane in emission.lanes:
        port = emission.port_of(lane)
        notes.append(f"- {lane.dst.words}: iperf3 -s -p {port}")
        if lane.relay:
            notes.append(
                f"- {lane.relay.words}: what --emit haproxy or --emit socat prints (port {port})"
            )
    cut = [lane for lane in emission.lanes if lane.connections > MOST_STREAMS]
    notes += [
        f"Lane {lane.number} is planned with {lane.connections} connections; one iperf3 opens "
        f"{MOST_STREAMS}."
        for lane in cut
    ]
    notes += [lane_words(lane) for lane in emission.lanes]
    choices = []
    for vm in emission.sources:
        lanes = [lane for lane in emission.lanes if lane.src == vm]
        lines = addresses(lane.relay or lane.dst for lane in lanes).splitlines()
        for lane in lanes:
            lines += _run(lane, emission.port_of(lane))
        lines.append(f"predicted={sum(lane.throughput_gbps for lane in lanes):.6g}")
        choices.append((vm.words, lines))
    body = f"seconds=${{SECONDS_OF_TEST:-{SECONDS}}}\n"
    body += "out=$(mktemp -d)\ntrap 'rm -rf \"$out\"' EXIT\ntrap 'exit 1' INT TERM\n"
    body += by_number("SRC", "which source VM this is", choices)
    return script(header(emission, "A trial with iperf3", notes), f"{body}wait\n{_SUM}")


def _run(lane: Lane, port: int) -> list[str]:
    to = (lane.relay or lane.dst).variable
    streams = min(lane.connections, MOST_STREAMS)
    return [
        f'iperf3 -c "${to}" -p {port} -P {streams} -t "$seconds" -O {OMITTED_S} -f m \\',
        f'  > "$out/{lane.number}" 2>&1 || echo "lane {lane.number} failed" >> "$out/failed" &',
    ]


# Of several streams the last line of the receiver is their sum.
_SUM = """\
if [ -e "$out/failed" ]; then
  cat "$out"/* >&2
  exit 1
fi
for lane in "$out"/*; do
  awk '/receiver/ { for (i = 2; i <= NF; i++) if ($i ~ /bits\\/sec/) rate = $(i - 1) }
    END { print rate }' "$lane"
done | awk -v predicted="$predicted" '{ sum += $1 / 1000 }
  END { printf "%.3f Gbit/s, predicted %.3f (%.0f %%)\\n", sum, predicted, 100 * sum / predicted }'
"""

"""Scripts for a plan's VMs: relays that split TCP (haproxy, socat), and a trial with iperf3."""

from __future__ import annotations

from planner.model.errors import InputError
from relayd.catalogue.copies import copies
from relayd.emitting.lanes import Emission, Lane, Vm, must_be_address
from relayd.emitting.text import addresses, by_number, header, lane_words, plain, script

# A control connection may be silent for as long as the data takes.
IDLE = "1d"
# socat moves 8 KiB at a time by default; more saves system calls.
SOCAT_BUFFER_BYTES = 262_144
SPARE_CONNECTIONS = 64


def haproxy(emission: Emission) -> str:
    """Return a configuration of haproxy (2.4 or later), the same for every relay VM.

    Missing addresses are taken from the environment; ``haproxy -c`` stops and names them.
    """
    _must_relay(emission, "haproxy")
    lanes = emission.relayed
    for lane in lanes:
        must_be_address(lane.src, "haproxy")
    notes = ["On each relay VM: haproxy -f FILE. It lets in the sources of the plan alone."]
    notes += [lane_words(lane) for lane in lanes]
    connections = sum(lane.connections for lane in lanes)
    text = header(emission, "Relays for haproxy", notes)
    ends = dict.fromkeys(vm for lane in lanes for vm in (lane.src, lane.dst))
    for vm in ends:
        if not vm.address:
            text += f"\n.if !defined({vm.variable})\n"
            text += f'  .alert "set {vm.variable}: address of {plain(vm.words)}"\n.endif\n'
    # A connection has two ends here.
    text += (
        f"\nglobal\n  maxconn {2 * connections + SPARE_CONNECTIONS}\n"
        "\ndefaults\n  mode tcp\n  option splice-auto\n  timeout connect 10s\n"
        f"  timeout client {IDLE}\n  timeout server {IDLE}\n"
    )
    for lane in lanes:
        port = emission.port_of(lane)
        text += (
            f"\n# {plain(lane.regions)}\n"
            f"listen lane_{lane.number}\n"
            f"  bind :{port}\n"
            f'  tcp-request connection reject unless {{ src "{_address(lane.src)}" }}\n'
            f'  server destination "{_address(lane.dst)}:{port}"\n'
        )
    return text


def _address(vm: Vm) -> str:
    return vm.address or f"${{{vm.variable}}}"


def socat(emission: Emission) -> str:
    """Return a script that relays until it is stopped, one socat a lane.

    Every relay VM runs the same script; where there are several, ``RELAY`` says which it is.
    """
    _must_relay(emission, "socat")
    for lane in emission.relayed:
        must_be_address(lane.src, "socat")
    notes = ["On each relay VM: sh FILE. It lets in the sources of the plan alone (IPv4)."]
    notes += [lane_words(lane) for lane in emission.relayed]
    choices = []
    for vm in emission.relays:
        lanes = [lane for lane in emission.relayed if lane.relay == vm]
        lines = addresses(end for lane in lanes for end in (lane.src, lane.dst)).splitlines()
        for lane in lanes:
            port = emission.port_of(lane)
            waiting = lane.connections + SPARE_CONNECTIONS
            lines += [
                f"socat -b {SOCAT_BUFFER_BYTES} \\",
                f'  "TCP4-LISTEN:{port},fork,reuseaddr,backlog={waiting},'
                f'range=${lane.src.variable}/32" \\',
                f'  "TCP4:${lane.dst.variable}:{port}" &',
                'started="$started $!"',
            ]
        choices.append((vm.words, lines))
    body = "started=\ntrap 'kill $started 2> /dev/null' EXIT\ntrap 'exit 1' INT TERM\n"
    body += by_number("RELAY", "which relay VM this is", choices)
    body += 'for relay in $started; do\n  wait "$relay"\ndone\n'
    return script(header(emission, "Relays with socat", notes), body)


def _must_relay(emission: Emission, tool: str) -> None:
    if not emission.relays:
        problem = f"is {tool}, which relays, and this plan is direct"
        remedy = "There is nothing to relay; `--emit iperf3` or `--emit rclone` say how to send."
        raise InputError("emit", problem, remedy=remedy)


# ---- a trial -------------------------------------------------------------------------------------

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
    return script(
        header(emission, "A trial with iperf3", notes),
        f"{body}wait\n{copies()['lines']['iperf3_sum']}",
    )


def _run(lane: Lane, port: int) -> list[str]:
    to = (lane.relay or lane.dst).variable
    streams = min(lane.connections, MOST_STREAMS)
    return [
        f'iperf3 -c "${to}" -p {port} -P {streams} -t "$seconds" -O {OMITTED_S} -f m \\',
        f'  > "$out/{lane.number}" 2>&1 || echo "lane {lane.number} failed" >> "$out/failed" &',
    ]

"""Scripts for a plan's VMs: relays that split TCP (haproxy), and a trial with iperf3."""

from __future__ import annotations

from planner.model.errors import InputError
from probes.tools import MOST_STREAMS
from relayd.catalogue.copies import shell
from relayd.emitting.emitter import Emitter
from relayd.emitting.lanes import Emission, must_be_address
from relayd.emitting.text import addresses, by_number, header, lane_words, plain, script

SPARE_CONNECTIONS = 64


def haproxy(emission: Emission) -> str:
    """Return a configuration of haproxy (2.4 or later), the same for every relay VM.

    Missing addresses are taken from the environment; ``haproxy -c`` stops and names them.

    Raises InputError if the plan is direct, or a source was given by a host name.
    """
    if not emission.relays:
        problem = "is haproxy, which relays, and this plan is direct"
        remedy = "There is nothing to relay; `--emit iperf3` or `--emit rclone` say how to send."
        raise InputError("emit", problem, remedy=remedy)
    lanes = emission.relayed
    for lane in lanes:
        must_be_address(lane.src)
    notes = ["On each relay VM: haproxy -f FILE. It lets in the sources of the plan alone."]
    notes += [lane_words(lane) for lane in lanes]
    text = header(emission, "Relays for haproxy", notes)
    ends = dict.fromkeys(vm for lane in lanes for vm in (lane.src, lane.dst))
    for vm in ends:
        if not vm.address:
            text += shell("haproxy_missing", variable=vm.variable, words=plain(vm.words))
    # A connection has two ends here.
    connections = 2 * sum(lane.connections for lane in lanes) + SPARE_CONNECTIONS
    text += shell("haproxy", connections=connections)
    for lane in lanes:
        src, dst = (vm.address or f"${{{vm.variable}}}" for vm in (lane.src, lane.dst))
        of = {"number": lane.number, "port": emission.port_of(lane), "src": src, "dst": dst}
        text += shell("haproxy_lane", regions=plain(lane.regions), **of)
    return text


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
            relays = f"what --emit haproxy prints (port {port})"
            notes.append(f"- {lane.relay.words}: {relays}")
    notes += [
        f"Lane {lane.number} is planned with {lane.connections} connections; one iperf3 opens "
        f"{MOST_STREAMS}."
        for lane in emission.lanes
        if lane.connections > MOST_STREAMS
    ]
    notes += [lane_words(lane) for lane in emission.lanes]
    choices = []
    for vm in emission.sources:
        lanes = [lane for lane in emission.lanes if lane.src == vm]
        lines = addresses(lane.relay or lane.dst for lane in lanes)
        for lane in lanes:
            of = {"number": lane.number, "to": (lane.relay or lane.dst).variable}
            streams = min(lane.connections, MOST_STREAMS)
            lines += shell("iperf3_lane", port=emission.port_of(lane), streams=streams, **of)
        lines += f"predicted={sum(lane.throughput_gbps for lane in lanes):.6g}\n"
        choices.append((vm.words, lines.splitlines()))
    body = shell("iperf3_begin") + by_number("SRC", "which source VM this is", choices)
    return script(header(emission, "A trial with iperf3", notes), body + shell("iperf3_end"))


_WRITES = "configuration of haproxy 2.4 or later"
HAPROXY = Emitter("haproxy", _WRITES, haproxy, needs="relays", order=10)
IPERF3 = Emitter(
    "iperf3",
    "a trial of the whole plan, all paths at once, against the prediction",
    iperf3,
    order=20,
)

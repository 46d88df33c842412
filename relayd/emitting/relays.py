"""Relays that split TCP: haproxy and socat on the relay VMs of a plan."""

from __future__ import annotations

from planner.model.errors import InputError
from relayd.emitting.lanes import Emission, Vm, must_be_address
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
        raise InputError(
            "emit",
            f"is {tool}, which relays, and this plan is direct",
            remedy="There is nothing to relay; `--emit iperf3` or `--emit rclone` say how to send.",
        )

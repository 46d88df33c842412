"""Liveness probes: one host pings all its neighbours in one command, a few hundred bytes each.

A liveness probe is a few quick pings, to all neighbours at once. Where ICMP never came back (Azure
filters it), a TCP handshake with the first probe port is tried as well: a refusal takes a round
trip too. Once a pair has answered over one protocol it is probed over that protocol alone, so that
a link that falls silent does not pass for a filtered one. While a link is down both protocols are
tried, in case a filter has changed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Literal, TypeAlias

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S
from probes.fleet.failures import ProbeError
from probes.fleet.remote import NOT_FOUND
from probes.fleet.session import HostSession
from probes.fleet.sessions import Sessions
from probes.importers import ping
from probes.importers.options import ImportOptions
from probes.liveness.link_health import LivenessProbe
from probes.samples import Sample
from probes.tools.round_trips import HANDSHAKES, INTERVAL_S, PACKET_GB

ProbeProtocol: TypeAlias = Literal["icmp", "tcp"]
_Method: TypeAlias = Callable[
    [HostSession, Mapping[str, str], float], Awaitable[dict[str, LivenessProbe]]
]
HANDSHAKE_GB = 6 * 74e-9
"""A connection that is accepted and closed; a refused one, or a request sent again, is less."""
AT_ONCE = 64
"""Pings of one host at a time: each is a process."""
COMMAND_S = 3.0
"""Longest time to open a channel and start a shell on a busy host."""
# A refusal within this share of the usual round trip came from something nearer than the host.
LEAST_SHARE_OF_USUAL = 0.5

# $1 count, $2 interval, $3 seconds to wait; then addresses. Each ping's output is one write.
_PINGS = """\
count=$1 gap=$2 wait=$3 n=0
shift 3
for address; do
    { said=$(LC_ALL=C PATH=$PATH:/usr/sbin:/sbin \\
        ping -n -q -c "$count" -i "$gap" -W "$wait" "$address" 2>&1)
      printf '=%s\\n%s\\n' "$address" "$said"; } &
    n=$((n + 1))
    [ $((n % 64)) -eq 0 ] && wait
done
wait
"""


@dataclass(frozen=True, slots=True)
class ProbeParameters:
    """Parameters of a liveness probe: packets sent, and time to wait for the last reply."""

    packets: int = 3
    wait_s: float = 1.0

    @property
    def probe_s(self) -> float:
        """Duration of a probe without replies."""
        return (self.packets - 1) * INTERVAL_S + self.wait_s

    @property
    def probe_gb(self) -> float:
        """Volume of a probe over ICMP, both directions together."""
        return self.packets * PACKET_GB


@dataclass
class LivenessProber:
    """Sends liveness probes from hosts to their neighbours; remembers each pair's protocol."""

    sessions: Sessions
    parameters: ProbeParameters
    # Source and destination host to the round-trip time measured before; 0 for none
    usual_ms: Callable[[str, str], float] = lambda _src, _dst: 0.0
    _protocols: dict[tuple[str, str], ProbeProtocol] = field(default_factory=dict)
    _shortest_ms: dict[tuple[str, str], float] = field(default_factory=dict)

    def most_gb(self, src: str, dst: str, *, silent: bool) -> float:
        """Return the most that the next probe of a host and its replies take, in GB."""
        protocol = None if silent else self._protocols.get((src, dst))
        icmp_gb = 0.0 if protocol == "tcp" else self.parameters.probe_gb
        tcp_gb = 0.0 if protocol == "icmp" else self.parameters.packets * HANDSHAKE_GB
        return icmp_gb + tcp_gb

    async def probe(
        self, src: str, targets: Sequence[str], silent: frozenset[str] = frozenset()
    ) -> dict[str, LivenessProbe]:
        """Probe hosts from one host; return the result for each.

        Raises ProbeError if the source host itself can't be used.

        Parameters
        ----------
        src : str
        targets : sequence of str
            Hosts of the fleet.
        silent : frozenset of str
            Those of them to probe over both protocols.
        """
        session = await self.sessions.session(src)
        at_s = time.time()
        found = dict.fromkeys(targets, LivenessProbe(at_s, self.parameters.packets, 0))
        methods: dict[ProbeProtocol, _Method] = {"icmp": self._pings, "tcp": self._handshakes}
        for protocol, send in methods.items():
            asked = [
                name
                for name in targets
                if not found[name].received
                and (name in silent or self._protocols.get((src, name), protocol) == protocol)
            ]
            if not asked:
                continue
            addresses = {name: self.sessions.fleet.target(src, name) for name in asked}
            for name, probe in (await send(session, addresses, at_s)).items():
                found[name] = probe
                if probe.received:
                    self._protocols[src, name] = protocol
                    if probe.rtt_ms is not None:
                        # The shortest recent time; drifts up by one percent a probe.
                        shortest = self._shortest_ms.get((src, name), probe.rtt_ms)
                        self._shortest_ms[src, name] = min(probe.rtt_ms, shortest * 1.01)
        return found

    async def _pings(
        self, session: HostSession, addresses: Mapping[str, str], at_s: float
    ) -> dict[str, LivenessProbe]:
        src, parameters = session.host.name, self.parameters
        settings = [str(parameters.packets), str(INTERVAL_S), f"{parameters.wait_s:g}"]
        output = await session.ask(
            ["sh", "-c", _PINGS, "relayd", *settings, *addresses.values()],
            -(-len(addresses) // AT_ONCE) * parameters.probe_s + COMMAND_S,
        )
        if output.status in NOT_FOUND:
            raise ProbeError(src, "missing-tool", "sh can't be run there")
        said = _by_address(output.stdout)
        return {
            name: self._read(src, name, said.get(address, b""), at_s)
            for name, address in addresses.items()
        }

    def _read(self, src: str, dst: str, output: bytes, at_s: float) -> LivenessProbe:
        fleet = self.sessions.fleet
        options = ImportOptions(
            src=fleet[src].region, dst=fleet[dst].region, measured_at_s=at_s, name="ping"
        )
        try:
            samples = [s for s in ping.read(BytesIO(output), options) if isinstance(s, Sample)]
        except FormatError:
            samples = []
        values = {sample.metric: sample for sample in samples}
        if "loss_pct" not in values:
            return LivenessProbe(at_s, self.parameters.packets, 0)
        detail = values["loss_pct"].read_detail()
        rtt = values.get("rtt_ms")
        rtt_ms = None if rtt is None else rtt.read_detail().get("min_ms", rtt.value)
        received = detail["replies"] if rtt_ms is not None else 0
        return LivenessProbe(at_s, detail["packets"], received, rtt_ms)

    async def _handshakes(
        self, session: HostSession, addresses: Mapping[str, str], at_s: float
    ) -> dict[str, LivenessProbe]:
        """Shake hands by TCP; a reset by something on the way does not count."""
        fleet, src, parameters = self.sessions.fleet, session.host.name, self.parameters
        places = [w for name, at in addresses.items() for w in (at, str(fleet[name].first_port))]
        settings = [str(parameters.packets), f"{parameters.wait_s:g}"]
        output = await session.ask(
            ["python3", "-I", "-c", HANDSHAKES, *settings, *places],
            parameters.packets * parameters.wait_s + COMMAND_S,
        )
        times_ms: dict[str, list[float]] = {}
        for line in output.stdout.decode(errors="replace").splitlines():
            address, _, ms = line.partition(" ")
            with suppress(ValueError):
                times_ms.setdefault(address, []).append(float(ms))
        found = {}
        for name, address in addresses.items():
            usual_ms = self._shortest_ms.get((src, name)) or self.usual_ms(src, name)
            least_ms = usual_ms * LEAST_SHARE_OF_USUAL
            genuine = [ms for ms in times_ms.get(address, ()) if ms >= least_ms]
            shortest = min(genuine, default=None)
            found[name] = LivenessProbe(at_s, parameters.packets, len(genuine), shortest)
        return found


def parameters_for(interval_s: float, longest_rtt_ms: float) -> ProbeParameters:
    """Return parameters with which three probes in a row fit well into an interval.

    Waits are whole seconds where there is time: old versions of ping accept no others.
    """
    least_s = 1.5 * longest_rtt_ms / MS_PER_S
    if interval_s >= 10:
        return ProbeParameters(3, float(max(1, -(-least_s // 1))))
    return ProbeParameters(2, round(max(0.2, interval_s / 12, least_s), 3))


def _by_address(output: bytes) -> dict[str, bytes]:
    """Split the output of the pings by address."""
    found = (block.partition(b"\n") for block in re.split(rb"(?m)^=", output)[1:])
    return {address.strip().decode(errors="replace"): said for address, _, said in found}

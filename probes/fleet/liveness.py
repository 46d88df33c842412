"""Light probing: one host looks at all its neighbours in one command, for a few hundred bytes each.

A look is a few quick pings, all neighbours at once. Where ICMP never came back (Azure filters it)
a TCP handshake with the first probe port is tried as well: a refusal takes a round trip too. Once
a pair has answered one way it is asked that way, so that a link that falls silent is not excused.
While it is down both ways are tried, in case a filter is what changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S
from probes.analysis.link_health import Look
from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions
from probes.importers import ping
from probes.importers.options import ImportOptions
from probes.samples import Sample
from probes.tools.ping import INTERVAL_S, PACKET_GB

Way: TypeAlias = Literal["icmp", "tcp"]
AT_ONCE = 64
"""Pings of one host at a time: each is a process."""
COMMAND_S = 3.0
"""What logging in to a running session and starting a shell may take on a busy host."""
# A handshake that is refused within this share of the usual round trip came from nearer by.
FROM_NEARER_BY = 0.5

# $1 count, $2 interval, $3 seconds to wait; then addresses. What a ping says is written at once.
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

# Handshakes with all addresses at once: count, seconds to wait, then address and port in turn.
_HANDSHAKES = """\
import errno, selectors, socket, sys, time
count, wait_s, places = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
for _ in range(count):
    chosen, began = selectors.DefaultSelector(), {}
    for address, port in zip(places[::2], places[1::2]):
        try:
            family, kind, _, _, place = socket.getaddrinfo(address, int(port), type=1)[0]
            s = socket.socket(family, kind)
            s.setblocking(False)
            began[s] = (address, time.perf_counter())
            error = s.connect_ex(place)
        except OSError:
            continue
        if error in (0, errno.EINPROGRESS):
            chosen.register(s, selectors.EVENT_WRITE)
    until = time.perf_counter() + wait_s
    while chosen.get_map() and time.perf_counter() < until:
        for key, _ in chosen.select(max(0.0, until - time.perf_counter())):
            s = key.fileobj
            ms = (time.perf_counter() - began[s][1]) * 1e3
            chosen.unregister(s)
            error = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error in (0, errno.ECONNREFUSED):
                print(began[s][0], f'{ms:.3f}', flush=True)
    for s in began:
        s.close()
"""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a look is done.

    Attributes
    ----------
    packets : int
        Of one look.
    wait_s : float
        For the last reply.
    """

    packets: int = 3
    wait_s: float = 1.0

    @property
    def look_s(self) -> float:
        """How long a look takes where nothing comes back."""
        return (self.packets - 1) * INTERVAL_S + self.wait_s

    @property
    def look_gb(self) -> float:
        """What a look moves, both ways together."""
        return self.packets * PACKET_GB


@dataclass
class Observer:
    """Looks at the neighbours of hosts, and remembers which way each answers.

    Parameters
    ----------
    sessions : Sessions
    manner : Manner
    usual_ms : callable
        Source and destination host to the round trip that was measured before; 0 for none.
    """

    sessions: Sessions
    manner: Manner
    usual_ms: Callable[[str, str], float] = lambda _src, _dst: 0.0
    _ways: dict[tuple[str, str], Way] = field(default_factory=dict)
    _shortest_ms: dict[tuple[str, str], float] = field(default_factory=dict)

    async def look(
        self, src: str, targets: Sequence[str], silent: frozenset[str] = frozenset()
    ) -> dict[str, Look]:
        """Look from one host at others; returns a look for each.

        Parameters
        ----------
        src : str
        targets : sequence of str
            Hosts of the fleet.
        silent : frozenset of str
            Those of them that are to be asked both ways.

        Raises
        ------
        ProbeError
            If the host that looks can't be used itself.
        """
        fleet = self.sessions.fleet
        addresses = {name: fleet.target(src, name) for name in targets}
        by_icmp = [n for n in targets if self._ways.get((src, n)) != "tcp" or n in silent]
        by_tcp = [n for n in targets if self._ways.get((src, n)) != "icmp" or n in silent]
        session = await self.sessions.session(src)
        at_s = time.time()
        found: dict[str, Look] = {}
        if by_icmp:
            manner = self.manner
            batches = -(-len(by_icmp) // AT_ONCE)
            command = [
                "sh",
                "-c",
                _PINGS,
                "relayd",
                str(manner.packets),
                str(INTERVAL_S),
                f"{manner.wait_s:g}",
                *(addresses[name] for name in by_icmp),
            ]
            output = await session.ask(command, batches * manner.look_s + COMMAND_S)
            if output.status in (126, 127):
                raise ProbeError(src, "missing-tool", "sh can't be run there")
            said = _blocks(output.stdout)
            for name in by_icmp:
                found[name] = self._read(src, name, said.get(addresses[name], b""), at_s)
                if found[name].received:
                    self._ways[src, name] = "icmp"
        unanswered = [name for name in by_tcp if name not in found or not found[name].received]
        if unanswered:
            handshakes = await self._handshakes(src, unanswered, addresses)
            for name in unanswered:
                found[name] = self._taken(src, name, handshakes.get(addresses[name], []), at_s)
        for name, look in found.items():
            if look.rtt_ms is not None:
                # The shortest of late; drifts up by a percent a look.
                shortest = self._shortest_ms.get((src, name), look.rtt_ms)
                self._shortest_ms[src, name] = min(look.rtt_ms, shortest * 1.01)
        return found

    def _read(self, src: str, dst: str, said: bytes, at_s: float) -> Look:
        fleet = self.sessions.fleet
        options = ImportOptions(
            src=fleet[src].region, dst=fleet[dst].region, measured_at_s=at_s, name="ping"
        )
        try:
            samples = [s for s in ping.read(iter([said]), options) if isinstance(s, Sample)]
        except FormatError:
            samples = []
        values = {sample.metric: sample for sample in samples}
        if "loss_pct" not in values:
            return Look(at_s, self.manner.packets, 0)
        import json

        detail = json.loads(values["loss_pct"].detail)
        rtt = values.get("rtt_ms")
        rtt_ms = None if rtt is None else json.loads(rtt.detail).get("min_ms", rtt.value)
        received = detail["replies"] if rtt_ms is not None else 0
        return Look(at_s, detail["packets"], received, rtt_ms)

    async def _handshakes(
        self, src: str, targets: Sequence[str], addresses: Mapping[str, str]
    ) -> dict[str, list[float]]:
        fleet, manner = self.sessions.fleet, self.manner
        places = [
            word for name in targets for word in (addresses[name], str(fleet[name].first_port))
        ]
        session = await self.sessions.session(src)
        output = await session.ask(
            [
                "python3",
                "-I",
                "-c",
                _HANDSHAKES,
                str(manner.packets),
                f"{manner.wait_s:g}",
                *places,
            ],
            manner.packets * manner.wait_s + COMMAND_S,
        )
        times: dict[str, list[float]] = {}
        for line in output.stdout.decode(errors="replace").splitlines():
            address, _, ms = line.partition(" ")
            try:
                times.setdefault(address, []).append(float(ms))
            except ValueError:
                continue
        return times

    def _taken(self, src: str, dst: str, times_ms: list[float], at_s: float) -> Look:
        """Return the look that handshakes make; a reset by something on the way is no answer."""
        usual_ms = self._shortest_ms.get((src, dst)) or self.usual_ms(src, dst)
        genuine = [ms for ms in times_ms if ms >= usual_ms * FROM_NEARER_BY]
        if not genuine:
            return Look(at_s, self.manner.packets, 0)
        self._ways[src, dst] = "tcp"
        return Look(at_s, self.manner.packets, len(genuine), min(genuine))


def manner_for(interval_s: float, longest_rtt_ms: float) -> Manner:
    """Return how to look so that three looks in a row fit well into an interval.

    Whole seconds of waiting where there is time: old pings read no others.
    """
    least_s = 1.5 * longest_rtt_ms / MS_PER_S
    if interval_s >= 10:
        return Manner(3, float(max(1, -(-least_s // 1))))
    return Manner(2, round(max(0.2, interval_s / 12, least_s), 3))


def _blocks(said: bytes) -> dict[str, bytes]:
    """Return what was said by address."""
    blocks: dict[str, bytes] = {}
    address = ""
    for line in said.splitlines(keepends=True):
        if line.startswith(b"="):
            address = line[1:].strip().decode(errors="replace")
            blocks[address] = b""
        elif address:
            blocks[address] += line
    return blocks

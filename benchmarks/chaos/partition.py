"""Two services on one database, and the one that watches is cut off from it, again and again.

Both take samples all the while. What was acknowledged must be stored, once; the one that is cut off
must have ended its probes before the other begins; and what hosts really sent must be within the
budget and within what the store says was spent: each ping is counted on its host.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chaos.kills import Killed, senders, settle
from benchmarks.chaos.takeover import over, role_of, temporary_folder, until
from probes.fleet.hosts import Fleet
from probes.tools.round_trips import PACKET_GB
from relayd.store import open_store
from relayd.store.campaigns.spending import Spending
from relayd.times import utc_date
from tests.http.running import Served
from tests.postgresql import running_server
from tests.probes.fleet.machines import machines
from tests.relayd.store.proxy import Proxy

REGIONS = ("aws:us-east-1", "gcp:us-east1")
USD_PER_GB = 10.0
BUDGET_USD = 1.0
LEFT_ROUNDS = 80
"""Of probes of both links that the day's budget still allows when this begins."""
SETTLED_S = 3.0
_ROUND_USD = len(REGIONS) * 2 * PACKET_GB * USD_PER_GB
_PING = """\
#!/bin/sh
echo "$(date +%s.%N) $*" >> {ticks}
exec /usr/bin/ping "$@"
"""


@dataclass
class Partitioned:
    """What was seen.

    Attributes
    ----------
    took_s : list of float
        From each cut to the other's role as prober.
    samples : Killed
        What became of those that were sent.
    pings : int
    sent_usd, spent_usd : float
        What pings cost by the hosts' count, and by the store's.
    wrong : list of str
    """

    took_s: list[float] = field(default_factory=list)
    samples: Killed = field(default_factory=Killed)
    pings: int = 0
    sent_usd: float = 0.0
    spent_usd: float = 0.0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Ping:
    """One ping as its host has seen it; by the target's address one knows whose it was."""

    at_s: float
    count: int
    service: int


def cut_off(tries: int) -> Partitioned:
    """Cut the watching one of two services off from the database so many times."""
    seen = Partitioned()
    with temporary_folder() as folder, running_server() as server, ExitStack() as stack:
        where = server.new_store()
        spent_before_usd = BUDGET_USD - LEFT_ROUNDS * _ROUND_USD
        with open_store(where, mode="write") as store:
            spending = Spending(store.database)
            spending.reserve(_today(), "campaign", spent_before_usd, BUDGET_USD)
            spending.settle(_today(), "campaign", spent_before_usd, spent_before_usd, 0.0)
        ticks = stack.enter_context(_counted_hosts(folder))
        proxies = [stack.enter_context(Proxy(server.port)) for _ in range(2)]
        services = [
            stack.enter_context(
                _service(over(server, where, "127.0.0.1", proxy.port), folder, number)
            )
            for number, proxy in enumerate(proxies)
        ]
        # With pauses: what is looked at takes half a minute of waiting for leases.
        sending = [stack.enter_context(senders(50_000_000 * number, 0.05)) for number in range(2)]
        for one, service in zip(sending, services, strict=True):
            one.service = service
        for _ in range(tries):
            until(lambda: "prober" in map(role_of, services))
            leader = [role_of(service) for service in services].index("prober")
            time.sleep(SETTLED_S)
            proxies[leader].hang()
            cut_s = time.time()
            other = services[1 - leader]
            until(lambda other=other: role_of(other) == "prober")  # type: ignore[misc]
            seen.took_s.append(time.time() - cut_s)
            time.sleep(SETTLED_S)
            proxies[leader].go_on()
            former = services[leader]
            until(lambda former=former: role_of(former) == "standby")  # type: ignore[misc]
        for one in sending:
            one.stop()
            settle(seen.samples, one, where)
        for service in services:
            service.stop()
        _judge(seen, _pings(ticks), where, spent_before_usd)
    return seen


def _judge(seen: Partitioned, pings: list[_Ping], where: str, before_usd: float) -> None:
    """Compare what hosts have sent with what the store says."""
    seen.wrong += seen.samples.wrong
    with open_store(where, mode="read") as store:
        committed_usd = Spending(store.database).committed_usd(_today())
    seen.pings = len(pings)
    seen.sent_usd = sum(ping.count for ping in pings) * PACKET_GB * USD_PER_GB
    seen.spent_usd = committed_usd - before_usd
    if seen.sent_usd > seen.spent_usd:
        seen.wrong.append(f"sent for ${seen.sent_usd:.7f}, and ${seen.spent_usd:.7f} is spent")
    if committed_usd > BUDGET_USD + 1e-12:
        seen.wrong.append(f"${committed_usd:.7f} is spent of ${BUDGET_USD}")
    turns = [
        ping for ping, last in zip(pings[1:], pings, strict=False) if ping.service != last.service
    ]
    # One service after the other: a change of hands for each cut, and no going back and forth.
    if len(turns) > len(seen.took_s):
        seen.wrong.append(f"{len(turns)} changes of hands: both probed at once")


def _pings(ticks: Path) -> list[_Ping]:
    found = []
    for line in ticks.read_text().splitlines():
        words = line.split()
        count, address = int(words[words.index("-c") + 1]), words[-1]
        found.append(_Ping(float(words[0]), count, int(address.split(".")[2]) - 1))
    return sorted(found, key=lambda ping: ping.at_s)


@contextmanager
def _counted_hosts(folder: Path) -> Iterator[Path]:
    """Run hosts that write down each ping; gives where, and writes a fleet file per service."""
    programs, ticks = folder / "programs", folder / "ticks"
    programs.mkdir()
    ticks.touch()
    (programs / "ping").write_text(_PING.format(ticks=ticks))
    (programs / "ping").chmod(0o755)
    with machines(folder, [*REGIONS], programs=programs) as (fleet, _):
        for number in range(2):
            (folder / f"fleet-{number}.toml").write_text(_fleet_text(fleet, number))
        yield ticks


def _fleet_text(fleet: Fleet, service: int) -> str:
    return "\n".join(
        f"[[host]]\nregion = '{host.region}'\nhost = '{host.host}'\nport = {host.port}\n"
        f"user = '{host.user}'\nkey = '{host.key}'\nknown_hosts = '{host.known_hosts}'\n"
        f"public_address = '127.0.{service + 1}.{number}'\negress_usd_per_gb = {USD_PER_GB}\n"
        for number, host in enumerate((fleet[region] for region in REGIONS), 1)
    )


@contextmanager
def _service(where: str, folder: Path, number: int) -> Iterator[Served]:
    settings = {
        "WATCH_DAILY_BUDGET_USD": str(BUDGET_USD),
        "WATCH_INTERVAL_S": "4",
        "WATCH_CAMPAIGN_EVERY_S": "0",
        "ACCESS_LOG": "false",
    }
    service = Served(
        where,
        "--fleet",
        str(folder / f"fleet-{number}.toml"),
        environment={f"RELAYD_SERVE_{name}": value for name, value in settings.items()},
        log=folder / f"service-{number}.log",
    )
    try:
        yield service
    finally:
        service.stop()


def _today() -> str:
    return utc_date(time.time())

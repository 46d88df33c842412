"""Two services on one store, and the one that watches hangs or loses its database.

The holder of the lease pings real hosts, which log each ping and its sender; on PostgreSQL
both services take samples all the while. What was acknowledged must be stored, once; the former
prober must have ended its probes before the other begins; and what hosts really sent must be within
the budget and within what the store says was spent.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.chaos.kills import Outcome, Senders
from probes.tools.round_trips import PACKET_GB
from relayd.store import open_store
from relayd.store.campaigns import Spending
from relayd.times import utc_date
from tests.http.running import Served
from tests.postgresql import PostgresqlServer, running_server
from tests.probes.fleet.machines import machines
from tests.relayd.store.proxy import Proxy
from tests.stopping import stopped
from tests.waiting import eventually

REGIONS = ("aws:us-east-1", "gcp:us-east1")
USD_PER_GB = 10.0
BUDGET_USD = 1.0
LEFT_ROUNDS = 80
"""Of probes of both links that the day's budget still allows when this begins."""
SETTLED_S = 3.0
_ROUND_USD = len(REGIONS) * 2 * PACKET_GB * USD_PER_GB
_SPENT_BEFORE_USD = BUDGET_USD - LEFT_ROUNDS * _ROUND_USD
_PING = """\
#!/bin/sh
echo "$(date +%s.%N) $*" >> {ticks}
exec /usr/bin/ping "$@"
"""
_ENVIRONMENT = {
    "RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": str(BUDGET_USD),
    "RELAYD_SERVE_WATCH_INTERVAL_S": "4",
    "RELAYD_SERVE_WATCH_CAMPAIGN_EVERY_S": "0",
    "RELAYD_SERVE_ACCESS_LOG": "false",
}

Kind = Literal["stopped-sqlite", "stopped-postgresql", "cut-off"]


@dataclass
class TakenOver(Outcome):
    """Results of the takeovers: pings, and what they cost by the hosts' count and the store's."""

    pings: int = 0
    sent_usd: float = 0.0
    spent_usd: float = 0.0


def take_over(kind: Kind, tries: int) -> TakenOver:
    """Stop the watching one of two services, or cut it off from the database, so many times."""
    seen = TakenOver()
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as name, ExitStack() as stack:
        folder, proxies, server = Path(name), [], None
        where = str(folder / "relayd.db")
        if kind != "stopped-sqlite":
            server = stack.enter_context(running_server())
            where = server.new_store()
        with open_store(where, mode="create") as store:  # all of the day's budget but some rounds
            spending = Spending(store.database)
            spending.reserve(_today(), "campaign", _SPENT_BEFORE_USD, BUDGET_USD)
            spending.settle(_today(), "campaign", _SPENT_BEFORE_USD, _SPENT_BEFORE_USD, 0.0)
        ticks = stack.enter_context(_counted_hosts(folder))
        addresses = [where] * 2
        if kind == "cut-off":
            assert server
            proxies = [stack.enter_context(Proxy(server.port)) for _ in range(2)]
            addresses = [through(server, where, proxy.port) for proxy in proxies]
        services = stack.enter_context(replicas(addresses, folder, _ENVIRONMENT, "--fleet"))
        # With pauses: what is looked at takes half a minute of waiting for leases. Not in a file: a
        # process that is stopped inside a transaction holds up all writers.
        sending = [
            stack.enter_context(Senders(50_000_000 * number, 0.05, service=service))
            for number, service in enumerate(services if server else [])
        ]
        seen.again_s = [_one(services, proxies) for _ in range(tries)]
        for one in sending:
            one.settle(seen, where)
        for service in services:
            service.stop()  # a second time does nothing
        _judge(seen, ticks, where)
    return seen


@contextmanager
def replicas(
    addresses: Sequence[str], folder: Path, environment: Mapping[str, str], fleet: str = ""
) -> Iterator[list[Served]]:
    """Run a service for each address of a store, with the fleet file that `fleet` names for it."""
    with ExitStack() as stack:
        services = []
        for number, address in enumerate(addresses):
            words = (fleet, str(folder / f"fleet-{number}.toml")) if fleet else ()
            log = folder / f"service-{number}.log"
            services.append(Served(address, *words, environment=environment, log=log))
            stack.callback(services[-1].stop)
        yield services


def _one(services: list[Served], proxies: list[Proxy]) -> float:
    """Let the prober hang until the other has probed for a while; return what that took."""
    eventually(lambda: "prober" in map(_role_of, services))
    leader = [_role_of(service) for service in services].index("prober")
    time.sleep(SETTLED_S)
    former, other = services[leader], services[1 - leader]
    with _cut_off(proxies[leader]) if proxies else stopped(former.process.pid):
        hung_s = time.time()
        eventually(lambda: _role_of(other) == "prober")
        took_s = time.time() - hung_s
        time.sleep(SETTLED_S)
    eventually(lambda: _role_of(former) == "standby")
    return took_s


@contextmanager
def _cut_off(proxy: Proxy) -> Iterator[None]:
    """Let nothing through to the database, but acknowledge all that is sent."""
    proxy.hang()
    try:
        yield
    finally:
        proxy.go_on()


def _judge(seen: TakenOver, ticks: Path, where: str) -> None:
    """Compare what hosts have sent with what the store says."""
    with open_store(where, mode="read") as store:
        committed_usd = Spending(store.database).committed_usd(_today())
    # Time, number of packets, and by the target's address the service.
    pings = sorted(
        (float(words[0]), int(words[words.index("-c") + 1]), words[-1].split(".")[2])
        for words in map(str.split, ticks.read_text().splitlines())
    )
    seen.pings = len(pings)
    seen.sent_usd = sum(count for _, count, _ in pings) * PACKET_GB * USD_PER_GB
    seen.spent_usd = committed_usd - _SPENT_BEFORE_USD
    if seen.sent_usd > seen.spent_usd:
        seen.wrong.append(f"sent for ${seen.sent_usd:.7f}, and ${seen.spent_usd:.7f} is spent")
    if committed_usd > BUDGET_USD + 1e-12:
        seen.wrong.append(f"${committed_usd:.7f} is spent of ${BUDGET_USD}")
    # One service after the other: a change of hands for each hang, and no going back and forth.
    turns = sum(ping[2] != last[2] for ping, last in zip(pings[1:], pings, strict=False))
    if turns > len(seen.again_s):
        seen.wrong.append(f"{turns} changes of hands: both probed at once")


@contextmanager
def _counted_hosts(folder: Path) -> Iterator[Path]:
    """Run hosts that write down each ping; gives where, and writes a fleet file per service."""
    programs, ticks = folder / "programs", folder / "ticks"
    programs.mkdir()
    ticks.touch()
    (programs / "ping").write_text(_PING.format(ticks=ticks))
    (programs / "ping").chmod(0o755)
    with machines(folder, [*REGIONS], programs=programs) as (fleet, _):
        for service in range(2):
            text = "\n".join(
                f"[[host]]\nregion = '{host.region}'\nhost = '{host.host}'\nport = {host.port}\n"
                f"user = '{host.user}'\nkey = '{host.key}'\nknown_hosts = '{host.known_hosts}'\n"
                f"public_address = '127.0.{service + 1}.{number}'\n"
                f"egress_usd_per_gb = {USD_PER_GB}\n"
                for number, host in enumerate((fleet[region] for region in REGIONS), 1)
            )
            (folder / f"fleet-{service}.toml").write_text(text)
        yield ticks


def _role_of(service: Served) -> str:
    watch = service.get("/readyz").json["watch"]
    return str(watch["role"]) if watch else "stopped"


def through(server: PostgresqlServer, where: str, port: int) -> str:
    """Return the address of a store by which a proxy reaches it."""
    database = where.partition("@/")[2].partition("?")[0]
    return server.url(database, over="tcp").replace(f":{server.port}/", f":{port}/")


def _today() -> str:
    return utc_date(time.time())

"""Holds the budgets of random campaigns, verifications and watches against what hosts really send.

Takes minutes to an hour and needs root: ``make budget-check``. Each of ``--number`` cases draws a
fleet file that is wrong by up to 50 times in caps and VM types and names any prices, a question to
the command line (``relayd probe``, also killed and resumed, ``relayd measure verify`` of a
transfer, a shuffle or a broadcast by estimates as wrong, ``relayd measure watch``) and a
budget. What counts are bytes that leave each host, by the counters of its network interface, times
the price that the fleet file states for it: nothing can know a price that the file gets wrong.

``--place veth`` runs on network namespaces that are joined at the kernel's full speed, ``--place
lab`` in an emulated WAN. Exits with 1 where a budget was exceeded by any byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import relayd
from benchmarks.labs import Check, lab_of
from benchmarks.veth_hosts import Place, veth_place
from probes.lab.topology import Site, Topology
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.http.running import ROOT, run

REGIONS = ("aws:us-east-1", "aws:eu-west-1", "aws:sa-east-1", "aws:ap-south-1")
VM_TYPES = ("t3.small", "m5.xlarge", "m5.8xlarge", "c7gn.16xlarge")
WRONG = 50.0
USUAL_MBPS = {"veth": 500.0, "lab": 20.0}
USUAL_USD_PER_GB = {"veth": 0.02, "lab": 2.0}
CONNECTIONS = 8
KINDS = ("probe",) * 4 + ("killed",) * 3 + ("verify",) * 2 + ("watch",)
STARTING_S = 60.0
"""Longest time that a command takes to begin, on a busy machine."""
BUDGET_SPENT = "that the budget allow"
"""In the problem of a probe that used up its allowance and needs more."""


@dataclass
class Outcome:
    """The spending of one case, and the reasons for its failure."""

    number: int
    place: str
    kind: str
    words: list[str]
    budget_usd: float
    usd: float = 0.0
    sent_gb: float = 0.0
    problem: str = ""
    held: int = 0
    kills: int = 0

    @property
    def share(self) -> float:
        """Of the budget."""
        return self.usd / self.budget_usd if self.budget_usd else float(self.usd > 0)


class _CommandError(Exception):
    """A command that ended as it should not."""


class Case:
    """One draw: a fleet file, a question and a budget, run in a folder of its own."""

    def __init__(self, place: Place, number: int, folder: Path, *, brief: bool = False) -> None:
        self.place, self.number, self.folder, self.brief = place, number, folder, brief
        self.random = random.Random(number)
        self.db, self.fleet = folder / "store.db", folder / "fleet.toml"
        usual_usd = USUAL_USD_PER_GB[place.name]
        self.prices = {region: round(self._wrong(usual_usd), 9) for region in place.hosts}
        self.kills = 0
        self.fleet.write_text(self._fleet())
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    def run(self) -> Outcome:
        """Ask, with a budget, and compare it with the traffic sent meanwhile."""
        kind = "killed" if self.brief else self.random.choice(KINDS)
        words = {"verify": self._verify, "watch": self._watch}.get(kind, self._probe)()
        found = Outcome(self.number, self.place.name, kind, words, self._budget_usd(words, kind))
        before, budget = self.place.sent_bytes(), f"{found.budget_usd:.9f}usd"
        limits = ["--daily-budget"] if kind == "watch" else ["--yes", "--json", "--budget"]
        act = {"watch": self._watched, "killed": self._killed}.get(kind, self._done)
        try:
            act([*words, *limits, budget])
        except _CommandError as failed:
            found.problem = str(failed)
        time.sleep(0.5)
        sent = {name: b - before[name] for name, b in self.place.sent_bytes().items()}
        found.usd = sum(count / 1e9 * self.prices[region] for region, count in sent.items())
        found.sent_gb = sum(sent.values()) / 1e9
        found.held, found.kills = self._held(), self.kills
        return found

    # ---- what is drawn -------------------------------------------------------------------------

    def _wrong(self, value: float) -> float:
        return value * float(WRONG ** self.random.uniform(-1, 1))

    def _fleet(self) -> str:
        usual_mbps = USUAL_MBPS[self.place.name]
        blocks = []
        for region, true in self.place.hosts.items():
            entry: dict[str, str | int | float] = {"region": region, **true}
            entry["egress_usd_per_gb"] = self.prices[region]
            if self.random.random() < 0.7:
                entry["egress_mbps"] = round(self._wrong(usual_mbps), 3)
                entry["ingress_mbps"] = round(self._wrong(usual_mbps), 3)
            if self.random.random() < 0.5:
                entry["vm_type"] = self.random.choice(VM_TYPES)
            lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items()]
            blocks.append("\n".join(["[[host]]", *lines, ""]))
        return "\n".join(blocks)

    def _pairs(self, most: int) -> list[tuple[str, str]]:
        pairs = list(permutations(self.place.hosts, 2))
        return self.random.sample(pairs, self.random.randint(1, most))

    def _probe(self) -> list[str]:
        chance = self.random.random
        words = ["probe", "--flow-time", "4s", "--aggregate-time", "4s", "--max-minutes", "0.5"]
        if self.brief:
            return [*words, "--phases", "per-flow", "--pairs", ">".join(self._pairs(1)[0])]
        if chance() < 0.3:
            phases = self.random.sample(["rtt", "per-flow", "caps", "aggregate"], 2)
            words += ["--phases", ",".join(phases)]
        if chance() < 0.5:
            words += ["--connections", str(self.random.choice([1, 4, 16]))]
        elif chance() < 0.3:
            words += ["--ramp"]
        for pair in self._pairs(4) if chance() < 0.75 else []:
            words += ["--pairs", ">".join(pair)]
        return words

    def _verify(self) -> list[str]:
        """Verify a plan that rests on estimates as wrong as the fleet file."""
        usual_mbps, at_s, found = USUAL_MBPS[self.place.name], time.time() - 3600, []
        for src, dst in permutations(self.place.hosts, 2):
            total = self._wrong(usual_mbps)
            for metric, value, count in (
                ("rtt_ms", 40.0, None),
                ("per_flow_mbps", total / 2, 1),
                ("aggregate_mbps", total, CONNECTIONS),
            ):
                sample = Sample(src, dst, metric, value, at_s, "iperf3", count, 10.0, True)  # type: ignore[arg-type]
                found.append(sample)
        with open_store(self.db, mode="create") as store:
            append(store, found)
            make_snapshot(store, load_catalogue())
        wan = relayd.open(self.db)
        away = [name for name in wan.known_regions() if name not in self.place.hosts]
        (src, dst), *_ = pairs = self._pairs(3)
        question = self.random.choice(["transfer", "shuffle", "broadcast"])
        plan: Any
        like: dict[str, Any] = {"avoid": away, "connections": CONNECTIONS}
        if question == "transfer":
            plan = wan.plan(src, dst, volume_gb=100.0, objective="time", vms=1, **like)
        elif question == "shuffle":
            plan = wan.shuffle({pair: self.random.uniform(1, 50) for pair in pairs}, **like)
        else:
            to = [name for name in self.place.hosts if name != src]
            plan = wan.broadcast(src, to, volume_gb=50.0, **like)
        file = self.folder / "plan.json"
        file.write_text(plan.model_dump_json())
        return ["measure", "verify", str(file), "--seconds", str(self.random.choice([3, 5]))]

    def _watch(self) -> list[str]:
        return ["measure", "watch", "--interval", "4s", "--campaign-every", "60s"]

    def _budget_usd(self, words: list[str], kind: str) -> float:
        """Draw a budget around what the question is expected to cost."""
        if kind == "watch":
            gb = USUAL_MBPS[self.place.name] / 8e3 * self.random.uniform(0.5, 20.0)
            return float(gb * sum(self.prices.values()) / len(self.prices))
        asked = (*words, "--dry-run", "--json", "--fleet", str(self.fleet))
        forecast = json.loads(run(*asked, db=self.db).stdout)
        part = forecast["at_most"] if kind == "verify" else forecast["campaign"]
        low, high = (0.4, 1.2) if kind == "verify" else (0.3, 20.0)
        low = 5.0 if self.brief else low
        share = low * (high / low) ** self.random.random()
        return float(max(1e-6, share * part["egress_usd"]))

    # ---- running -------------------------------------------------------------------------------

    def _start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        where = ["--fleet", str(self.fleet), "--db", str(self.db)]
        command = [*self.place.within, sys.executable, "-m", "relayd", *words, *where]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=pipe, stderr=pipe, text=True
        )

    def _done(self, words: Sequence[str]) -> None:
        started = self._start(words)
        _, err = started.communicate(timeout=900)
        nothing_sent = started.returncode == 2 and "is too little" in err
        if started.returncode not in (0, 1, 5) and not nothing_sent:
            raise _CommandError(f"{words} exited with {started.returncode}: {err[-2000:]}")

    def _killed(self, words: Sequence[str]) -> None:
        """Kill it once or twice while it measures, and let it resume."""
        for _ in range(self.random.choice([1, 2])):
            started = self._start_and_wait(words, 100_000)  # a throughput test has begun
            time.sleep(self.random.uniform(0.0, 4.0))
            if started.poll() is None:
                started.send_signal(signal.SIGKILL)
                self.kills += 1
            started.communicate()
            words = ["probe", "--resume", "--json"]
        self._done(words)

    def _start_and_wait(self, words: Sequence[str], count: int) -> subprocess.Popen[str]:
        """Start, and wait until hosts have sent so many bytes, or the command has ended."""
        enough = sum(self.place.sent_bytes().values()) + count
        started, until_s = self._start(words), time.monotonic() + STARTING_S
        while sum(self.place.sent_bytes().values()) < enough and time.monotonic() < until_s:
            if started.poll() is not None:
                break
            time.sleep(0.2)
        return started

    def _watched(self, words: Sequence[str]) -> None:
        """Watch for a while, be killed, watch on, and end in good order."""
        for number, seconds in ((signal.SIGKILL, 8.0), (signal.SIGTERM, 16.0)):
            started = self._start_and_wait(words, 1)
            time.sleep(self.random.uniform(0.2, 1.0) * seconds)
            started.send_signal(number)
            _, err = started.communicate(timeout=120)
            self.kills += number == signal.SIGKILL
        if started.returncode not in (0, -signal.SIGTERM):  # it may still be starting
            raise _CommandError(f"watch exited with {started.returncode}: {err[-2000:]}")

    def _held(self) -> int:
        """Count the attempts of probes that sent all that they were allowed and needed more."""
        if not self.db.exists():
            return 0
        query = (
            "SELECT coalesce(sum(attempts - (status = 'done')), 0) FROM probes "
            "WHERE status = 'done' OR problem LIKE ?"
        )
        with closing(sqlite3.connect(self.db)) as connection:
            return int(connection.execute(query, (f"%{BUDGET_SPENT}%",)).fetchone()[0])


@contextmanager
def lab_place(folder: Path, regions: Sequence[str]) -> Iterator[Place]:
    """Bring up a lab of four sites with different caps and windows."""
    sites = tuple(
        Site(name, 12.0 + 6 * i, 30.0 - 4 * i, 60_000 + 20_000 * i)
        for i, name in enumerate(regions)
    )
    rtts = tuple(
        tuple(0.0 if i == j else 10.0 + 15.0 * abs(i - j) for j in range(4)) for i in range(4)
    )
    os.environ.setdefault("RELAYD_LAB_DIR", str(folder / "labs"))
    keys = ("host", "port", "user", "key", "known_hosts", "private_address", "public_address")
    with lab_of(Topology(sites, rtts)) as lab:
        hosts = {
            entry["region"]: {name: entry[name] for name in keys}
            for entry in tomllib.loads(lab.fleet_file.read_text())["host"]
        }

        def sent() -> dict[str, int]:
            return {site["region"]: site["sent_bytes"] for site in lab.status()["sites"]}

        yield Place("lab", (), hosts, sent)


PLACES = {"veth": veth_place, "lab": lab_place}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases one after the other; print each, and what all of them show."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=200, help="cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--place", choices=PLACES, help="in place of half of them in each")
    parser.add_argument("--brief", action="store_true", help="one probe each, killed and resumed")
    parser.add_argument("--json", metavar="FILE", help="append each outcome there, a line each")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was brought up is taken down
    places = [options.place] if options.place else list(PLACES)
    outcomes = []
    for turn, name in enumerate(places):
        with tempfile.TemporaryDirectory() as folder, PLACES[name](Path(folder), REGIONS) as place:
            for number in range(options.first + turn, options.first + options.number, len(places)):
                with tempfile.TemporaryDirectory() as own:
                    outcomes.append(Case(place, number, Path(own), brief=options.brief).run())
                _tell(outcomes[-1], options.json)
    check = Check()
    for what, count in (
        ("cases", len(outcomes)),
        ("  with a kill", sum(found.kills > 0 for found in outcomes)),
        ("  that sent anything", sum(found.sent_gb > 1e-4 for found in outcomes)),
        ("attempts held to what they may send", sum(found.held for found in outcomes)),
    ):
        check.note(what, count, "")
    check.at_most("commands that failed", sum(bool(o.problem) for o in outcomes), 0, "")
    check.at_most("over their budget", sum(found.share > 1 for found in outcomes), 0, "")
    check.at_most("largest share of a budget", 100 * max(o.share for o in outcomes), 100, "%")
    return check.finished(None, "")


def _tell(found: Outcome, json_file: str | None) -> None:
    print(
        f"{found.number:>4} {found.place} {found.kind:<7} {found.share:7.1%} of "
        f"${found.budget_usd:.6f}, {found.sent_gb * 1e3:.3f} MB, held {found.held}",
        flush=True,
    )
    if found.problem:
        print(found.problem, file=sys.stderr)
    if json_file:
        with Path(json_file).open("a") as file:
            file.write(json.dumps({**vars(found), "share": found.share}) + "\n")


if __name__ == "__main__":
    sys.exit(main())

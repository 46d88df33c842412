"""Changes inside of tests, and from test to test: transients, buckets, transfers, UDP rates."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress

import numpy as np

from probes.analysis.evidence import Record, TooFewError, spread
from probes.analysis.falls import FEWEST_TESTS as FEWEST_BURSTS
from probes.analysis.falls import BurstTest, burst_of, drop_cause, token_bucket
from probes.analysis.level_shift import FEWEST_TESTS, LevelPattern, levels_between_tests
from probes.analysis.steady_state import changes_in
from probes.analysis.udp import FEWEST_RATES, rate_sweep
from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, analysis
from relayd.report.sections.rates import RATES

MOST_LISTED = 20
FEWEST_TRANSFERS = 10
CHANGES = {
    "burst": "bursts at the beginning",
    "drop": "drops to a lower rate",
    "rise": "rises to a higher rate",
    "two-level": "goes back and forth between two rates",
    "stall": "stalls: seconds without data",
}
LEVELS: dict[LevelPattern, str] = {
    "two-level": "two levels by turns",
    "shift": "one lasting shift",
    "undecided": "undecided",
}
REFILLING = {
    "bucket": "a bucket that pauses fill",
    "per-test": "a limit of each transfer, whatever the pause",
    "undecided": "undecided: no short pauses",
}


@analysis(
    "transients",
    "Do rates hold during a transfer?",
    "Lasting changes of level in the 1 s intervals of probes: initial bursts, falls from high "
    "to low with time and volume, paths between two levels (GLOBECOM 2015, WANs between "
    "public-cloud datacenters); two levels from test to test of one pair, told by their order "
    "in time (runs, Wald and Wolfowitz 1940) from one shift that lasts.",
)
def transients(section: Section, data: ReportData) -> None:
    """Tell whether rates hold from a test's first to its last second."""
    for metric, name in RATES.items():
        _inside_tests(data, metric, name, section)
        _between_tests(data, metric, name, section)


def _inside_tests(data: ReportData, metric: Metric, name: str, section: Section) -> None:
    tests: Counter[str] = Counter()
    changes: dict[tuple[str, str], list[Record]] = defaultdict(list)
    drops: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for test in data.tests(metric, "intervals"):
        providers = provider_pair(test.src, test.dst)
        tests[providers] += 1
        for change in changes_in(test.read_detail()):
            changes[providers, change["pattern"]].append(change)
            if change["pattern"] == "drop":
                drops[test.src, test.dst].append((change["at_s"], change["at_gb"]))
    count = tests.total()
    section.samples += count
    if not count:
        section.say(f"No test with {name} kept its intervals.")
        return
    records: list[Record] = [
        {"providers": providers, "pattern": pattern, "found": len(found), "tests": tests[providers]}
        | {
            key.replace("at_", "after_"): float(np.median([change[key] for change in found]))
            for key in ("at_s", "at_gb", "before_mbps", "after_mbps")
        }
        for providers in sorted(tests)
        for pattern in CHANGES
        if (found := changes[providers, pattern])
    ]
    causes = {pair: drop_cause(found) for pair, found in drops.items()}
    section.figures[f"{metric}_within_tests"] = {
        "tests": count,
        "changes": records,
        "drop_causes": [{"src": a, "dst": b, "cause": c} for (a, b), c in causes.items()],
    }
    if not records:
        section.say(f"The rate held in all {count} tests with {name}.")
        return
    section.table(
        f"Changes during tests with {name} (medians)",
        (
            record
            | {"what": CHANGES[record["pattern"]], "of": f"{record['found']} of {record['tests']}"}
            for record in records
        ),
        "providers what of after_s:.0f after_gb:.3g before_mbps:,.0f after_mbps:,.0f",
    )
    share = sum(record["found"] for record in records) / count
    section.say(f"In tests with {name} there are {share:.2g} lasting changes a test.")
    for cause in ("time", "volume"):
        if pairs := sum(found == cause for found in causes.values()):
            section.say(
                f"Paths whose rate falls after a certain {cause}, whatever the rate: {pairs}."
            )


def _between_tests(data: ReportData, metric: Metric, name: str, section: Section) -> None:
    asked = 0
    records: list[Record] = []
    for src, dst, rows in data.pairs(metric):
        rates = rows["value"][rows["connections"] == rows["connections"].max()]
        if len(rates) < FEWEST_TESTS:
            continue
        asked += 1
        if levels := levels_between_tests(rates.tolist()):
            records.append({"src": src, "dst": dst, **levels._asdict()})
    if not asked:
        section.say(f"No pair was tested {FEWEST_TESTS} times with {name}.")
        return
    kept = ("src", "dst", "low_mbps", "high_mbps")
    section.figures[f"{metric}_between_tests"] = {"pairs": asked} | {
        key: [{name: one[name] for name in kept} for one in records if one["pattern"] == pattern]
        for pattern, key in (("two-level", "two_levels"), ("shift", "shifts"))
    }
    counts = Counter(record["pattern"] for record in records)
    section.say(
        f"Of {asked} pairs with {name}, {counts['two-level']} are at one of two levels "
        f"from test to test, {counts['shift']} went from one to another for good, and of "
        f"{counts['undecided']} the order of tests does not tell which."
    )
    section.table(
        f"Pairs with two levels, {name}, Mbit/s",
        (record | {"what": LEVELS[record["pattern"]]} for record in records[:MOST_LISTED]),
        "src dst low_mbps:,.0f high_mbps:,.0f changes what",
    )


@analysis(
    "buckets",
    "Do VMs burst, and when again?",
    "Tests of one VM, at any destination, whose rate fell: tokens are what went beyond the "
    "lasting rate; tests after short pauses find less, which is how fast the bucket fills "
    "(burstable VMs: HotCloud 2018; the spike at the start: Computer Networks 2015).",
)
def buckets(section: Section, data: ReportData) -> None:
    """Tell the volume that VMs may send before their rate falls, and the rate of its return."""
    by_vm: dict[tuple[str, str], list[BurstTest]] = defaultdict(list)
    for metric in RATES:
        for test in data.tests(metric, "intervals"):
            section.samples += 1
            if (burst := burst_of(test)) is not None:
                by_vm[test.src + test.src_zone, test.src_vm or "?"].append(burst)
    records: list[Record] = []
    for (place, vm_type), tests in sorted(by_vm.items()):
        with suppress(TooFewError):
            bucket = token_bucket(sorted(tests))._asdict()
            records.append({"vm": place, "vm_type": vm_type, **bucket})
    if not records:
        section.say(
            f"No conclusion. The rate of no VM fell in {FEWEST_BURSTS} tests: long ones, such as "
            "`relayd probe --full-time --flow-time 3m`, see it."
        )
        return
    section.figures["buckets"] = records
    for found in records:
        refill = ""
        if found["refill_mbps"] is not None:
            hours = found["depth_gb"] * 8e3 / found["refill_mbps"] / 3600
            refill = f" It fills at {found['refill_mbps']:,.0f} Mbit/s, in {hours:.2g} h when idle."
        section.say(
            f"{found['vm_type']} in {found['vm']} sends {found['peak_mbps']:,.0f} Mbit/s for the "
            f"first {found['volume_gb']:.3g} GB, then {found['sustained_mbps']:,.0f}: "
            f"{REFILLING[found['refilling']]}.{refill}"
        )
    section.table(
        "Bursts of VMs",
        records,
        "vm vm_type tests peak_mbps:,.0f sustained_mbps:,.0f depth_gb:.3g refill_mbps:,.0f",
    )


@analysis(
    "transfers",
    "How alike are transfers of one file?",
    "Times of repeated transfers of the same volume (as 105 MB by scp ten times an hour: "
    "Predictability of cloud networks, 2021): spread, and the 95th percentile over the median, "
    "which is what a cautious deadline adds.",
)
def transfers(section: Section, data: ReportData) -> None:
    """Tell the variation of repeated transfers of one file."""
    times: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for test in data.tests("transfer_s", "detail"):
        section.samples += 1
        volume_gb = test.read_detail().get("volume_gb")
        if isinstance(volume_gb, int | float):
            times[test.src, test.dst, float(volume_gb)].append(test.value)
    records: list[Record] = []
    for (src, dst, volume_gb), seconds in sorted(times.items()):
        with suppress(TooFewError):
            found = spread(seconds, fewest=FEWEST_TRANSFERS)
            figures = {"transfers": found["samples"], "median_s": found["median"]}
            share = {"percentile_95_over_median": found["percentile_95"] / found["median"]}
            link = {"src": src, "dst": dst, "volume_gb": volume_gb}
            records.append({**link, **figures, "cov": found["cov"], **share})
    if not records:
        section.say(
            f"No conclusion. No link has {FEWEST_TRANSFERS} transfers of one volume: report them "
            "(`relayd transfers`), or import times as CSV with transfer_s and volume_mb."
        )
        return
    section.figures["transfers"] = records
    records = sorted(records, key=lambda record: -record["percentile_95_over_median"])
    worst = records[0]["percentile_95_over_median"]
    usual = float(np.median([record["cov"] for record in records]))
    section.say(
        f"Times of {len(records)} repeated transfers vary by {usual:.1%} (median coefficient of "
        f"variation); of the least steady, one in twenty takes over {worst:.2f}x the median."
    )
    section.table(
        "Transfers of one volume, the least steady first",
        records[:MOST_LISTED],
        "src dst volume_gb:,.4g transfers median_s:.3g cov:.1% percentile_95_over_median:.2f",
    )


@analysis(
    "sweeps",
    "What arrives of what is sent?",
    "UDP tests of one link at growing rates: received against truly sent, the sender's cap, "
    "the flattening edge and the penalty edge (Network throughput in Amazon EC2, Computer "
    "Networks 2015); the best 5 s of any test as the path's capacity (Computer Networks 2016).",
)
def sweeps(section: Section, data: ReportData) -> None:
    """Find the sending rates from which the received rate stops following."""
    rates: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    best: dict[tuple[str, str], tuple[float, bool]] = {}
    for test in data.tests("udp_mbps", "detail"):
        section.samples += 1
        link, detail = (test.src, test.dst), test.read_detail()
        sent, received, asked = (
            float(told) if isinstance(told := detail.get(name), int | float) else None
            for name in ("offered_mbps", "mean_mbps", "asked_mbps")
        )
        if sent is not None:
            rates[link].append((asked or sent, sent, test.value if received is None else received))
        bound = detail.get("lower_bound") is not False
        best[link] = max(best.get(link, (0.0, True)), (test.value, bound))
    _say_capacities(section, best)
    records: list[Record] = []
    for (src, dst), steps in rates.items():
        with suppress(TooFewError):
            records.append({"src": src, "dst": dst, **rate_sweep(*np.array(steps).T)})
    if not records:
        section.say(
            f"No link was tested at {FEWEST_RATES} sending rates: `relayd probe --udp-rates 12` "
            "does that; files of `iperf3 -u -b RATE -J` can be imported."
        )
        return
    section.figures["sweeps"] = records
    flat, falling = (
        sum(record[edge] is not None for record in records)
        for edge in ("flattening_edge_mbps", "penalty_edge_mbps")
    )
    section.say(
        f"Of {len(records)} links tested at growing rates, what is received flattens on {flat}, "
        f"and falls again beyond a penalty edge on {falling}."
    )
    section.table(
        "Edges of what is received, Mbit/s sent",
        records,
        "src dst rates sender_cap_mbps:,.0f flattening_edge_mbps:,.0f penalty_edge_mbps:,.0f",
    )


def _say_capacities(section: Section, best: dict[tuple[str, str], tuple[float, bool]]) -> None:
    if not best:
        return
    section.figures["capacity"] = [
        {"src": src, "dst": dst, "mbps": mbps, "is_lower_bound": bound}
        for (src, dst), (mbps, bound) in best.items()
    ]
    reached = [mbps for mbps, bound in best.values() if not bound]
    over = f", {min(reached):,.0f} to {max(reached):,.0f} Mbit/s" if reached else ""
    section.say(
        f"Of {len(best)} links, tests of {len(reached)} reached the capacity of the path{over}; on "
        "the others all that was sent arrived, so their figure is a lower bound."
    )

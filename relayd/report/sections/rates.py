"""Speed of links and VMs: throughput, heterogeneity, relays, caps, fees."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.answer import dumped
from planner.model.errors import DataError
from probes.analysis.comparisons import (
    FEWEST_DESTINATIONS,
    fees_against_performance,
    homogeneity,
    vm_spread,
)
from probes.analysis.evidence import Record, TooFewError, spread
from probes.analysis.fleet_caps import CAP_NAMES
from probes.analysis.relay_gains import distribution, latency_gains
from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, analysis
from relayd.report.rendering import cumulative, points, ranges

RATES: dict[Metric, str] = {"per_flow_mbps": "one connection", "aggregate_mbps": "many connections"}
FEWEST_REPEATS = 3
MOST_SOURCES = 24


@analysis(
    "throughput",
    "How fast are transfers?",
    "Mean and standard deviation of each pair's median, by providers and VM types; coefficient "
    "of variation of repeated tests of one pair (Computer Networks 2016, WANs between "
    "public-cloud datacenters).",
    RATES,
)
def throughput(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell the rates of pairs, and their variation from test to test."""
    name = RATES[metric]
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    repeated: list[float] = []
    for src, dst, rows in data.pairs(metric):
        group = provider_pair(src, dst), data.vm_types(metric, rows[-1])
        groups[group].append(float(np.median(rows["value"])))
        if len(rows) >= FEWEST_REPEATS and rows["value"].mean() > 0:
            repeated.append(spread(rows["value"])["cov"])
    if not groups:
        section.say(f"There is no test with {name}.")
        return
    kept = ("mean", "deviation", "minimum", "maximum")
    records = []
    for (providers, vm_types), values in sorted(groups.items()):
        found = spread(values, fewest=1)
        record: Record = {"providers": providers, "vm_types": vm_types, "pairs": len(values)}
        records.append(record | {key: found[key] for key in kept})
    section.figures[metric] = records
    section.table(
        f"Throughput of {name}, Mbit/s",
        records,
        "providers vm_types pairs mean:,.0f deviation:,.0f minimum:,.0f maximum:,.0f",
    )
    if not repeated:
        section.say(
            f"No pair was tested {FEWEST_REPEATS} times with {name}: how much tests vary can't "
            "be told."
        )
        return
    middle, high = np.percentile(repeated, (50, 95)).tolist()
    figures = {"pairs": len(repeated), "median": middle, "percentile_95": high}
    section.figures[f"{metric}_cov_across_tests"] = figures
    section.say(
        f"Tests of one pair with {name} vary by {middle:.1%} (median coefficient of "
        f"variation over {len(repeated)} pairs tested {FEWEST_REPEATS} times or more; "
        f"95th percentile {high:.1%})."
    )


@analysis(
    "heterogeneity",
    "Is bandwidth the same towards every destination?",
    "Coefficient of variation of the rates from one source to its destinations, and fastest "
    "over slowest; HotCloud 2018, Figure 1a (one connection), Figure 2 and Table 3 (many).",
    RATES,
)
def heterogeneity(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether bandwidth differs by destination, for one flow and for many."""
    name = RATES[metric]
    rates: dict[str, list[float]] = defaultdict(list)
    for (src, _), value in data.medians(metric).items():
        rates[src].append(value)
    found = [homogeneity(row) for row in rates.values() if len(row) >= FEWEST_DESTINATIONS]
    if not found:
        section.say(
            f"With {name}: no conclusion. Three destinations of a source are needed, and no "
            "source has them."
        )
        return
    cov, ratio = (
        float(np.median([one[key] for one in found])) for key in ("cov", "fastest_over_slowest")
    )
    uniform = sum(one["homogeneous"] for one in found)
    section.figures[metric] = {
        "sources": len(found),
        "median_cov": cov,
        "homogeneous": uniform,
        "median_fastest_over_slowest": ratio,
    }
    section.say(
        f"With {name}, rates from one source vary by {cov:.0%} over its "
        f"destinations (median of {len(found)} sources; fastest over slowest {ratio:.1f}x); "
        f"{uniform} of {len(found)} sources send at one rate to all (under 10 %)."
    )
    shown = sorted(rates, key=lambda src: -float(np.median(rates[src])))
    section.charts.append(
        ranges(
            f"Rates from each source to its destinations with {name}: median, 5th to 95th "
            f"percentile{' (the fastest 24 sources)' if len(shown) > MOST_SOURCES else ''}.",
            "Mbit/s",
            [(src, rates[src]) for src in shown[:MOST_SOURCES]],
            log=metric == "per_flow_mbps",
        )
    )


@analysis(
    "relays",
    "What would relays gain?",
    "Best single relay over direct for every pair between measured regions, by the estimates that "
    "plans rest on: min(first link, second link) within the VMs' caps, one VM a region, with one "
    "connection and with 64, as `relayd data matrix --metric relay-gain` has it. HotCloud 2018, "
    "Figure 1c, and its rebuttal by aggregates.",
)
def relays(section: Section, data: ReportData) -> None:
    """Tell the gains of the best relay over direct."""
    gains: dict[str, list[float]] = {}
    for name, analyse in (
        ("one_connection", lambda: distribution(data.relay_gains(1))),
        ("many_connections", lambda: distribution(data.relay_gains(DEFAULT_CONNECTIONS))),
        ("latency", lambda: latency_gains(data.matrix("rtt_ms"))),
    ):
        found = section.conclude(name, analyse)
        if found is None:
            continue
        words = name.replace("_", " ")
        gains[words] = found["gains"].tolist()
        section.figures[name].pop("gains")
        section.say(
            f"{words.capitalize()}: {found['share_1_5']:.0%} of {found['pairs']} pairs "
            f"gain 1.5x or more, {found['share_1_1']:.0%} gain 1.1x or more; median "
            f"{found['median']:.2f}x, most {found['maximum']:.1f}x."
        )
    if gains:
        section.charts.append(
            cumulative(
                "Gain of the best single relay over direct: share of pairs up to each gain.",
                "gain over direct",
                gains,
                log=True,
            )
        )
    section.samples = sum(map(data.count, (*RATES, "rtt_ms")))


@analysis(
    "caps",
    "What do VMs carry at most?",
    "Caps from one-to-many and many-to-one tests, by VM type; how VMs of one type differ, and "
    "the first percentile (GLOBECOM 2015).",
)
def caps(section: Section, data: ReportData) -> None:
    """Tell the caps of VMs of each type, and their differences."""
    records: list[Record] = []
    for metric, name in CAP_NAMES.items():
        section.samples += data.count(metric)
        for vm_type, by_vm in _rates_of_vms(data, metric).items():
            values = spread([np.median(rates) for rates in by_vm.values()], fewest=1)
            records.append({"vm_type": vm_type, "cap": name, **values})
            try:
                found = vm_spread(by_vm)
            except TooFewError as error:
                section.say(f"{name.capitalize()} {vm_type}: no conclusion. {error}")
                continue
            section.figures[f"{name}_{vm_type}"] = dumped(found, as_json=True)
            section.say(
                f"{name.capitalize()} of {vm_type}: {found['between_share']:.0%} of the variance "
                f"of {found['samples']} tests lies between {found['vms']} VMs"
                + (", which differ beyond chance." if found["vms_differ"] else ".")
            )
    section.table(
        "VM caps, Mbit/s",
        records,
        "vm_type cap samples median:,.0f minimum:,.0f maximum:,.0f cov:.1%",
    )
    if not records:
        section.say("There is no test of VM caps.")


def _rates_of_vms(data: ReportData, metric: Metric) -> dict[str, dict[str, list[float]]]:
    """Return the rates of each VM, by VM type: sources are their region and zone."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    columns = map(data.samples_of(metric).column, ("src", "src_zone", "src_vm", "value"))
    for region, zone, vm, value in zip(*columns, strict=True):
        rates[f"{region.partition(':')[0]}:{vm or '?'}"][region + zone].append(value)
    return dict(sorted(rates.items()))


@analysis(
    "fees",
    "Does a higher price buy speed?",
    "Rank correlation over source regions of the first-tier egress fee and the throughput "
    "with many connections, medians over destinations (Computer Networks 2016).",
    ("aggregate_mbps",),
)
def fees(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether expensive egress is faster."""
    by_source: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (src, dst), mbps in data.medians(metric).items():
        try:
            usd_per_gb = data.catalogue.egress_price(src, dst).tiers[0].usd_per_gb
        except DataError:
            usd_per_gb = np.nan
        by_source[src].append((usd_per_gb, mbps))
    rows = [
        (float(np.nanmedian(prices)), float(np.median(rates)), src.partition(":")[0])
        for src, links in by_source.items()
        for prices, rates in [np.array(links).T]
        if np.isfinite(prices).any()
    ]
    prices, rates = ([row[at] for row in rows] for at in (0, 1))
    key = "fees_against_throughput"
    found = section.conclude(key, fees_against_performance, prices, rates)
    if found is None:
        return
    correlation = found["correlation"]
    direction = "faster" if correlation > 0 else "slower"
    section.say(
        f"Over {found['pairs']} source regions, dearer egress goes with {direction} transfers "
        f"(Spearman {correlation:+.2f}, p = {found['p_value']:.3f})."
        if found["related"]
        else f"Over {found['pairs']} source regions, fee and throughput are not related beyond "
        f"chance (Spearman {correlation:+.2f}, p = {found['p_value']:.2f})."
    )
    section.charts.append(
        points(
            "Egress fee against throughput, one point a source region.", "USD/GB", "Mbit/s", rows
        )
    )

"""Speed of links and VMs, and its changes in time: throughput, relays, patterns, transfers."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.answer import dumped
from probes.analysis.comparisons import (
    FEWEST_DESTINATIONS,
    distribution,
    homogeneity,
    latency_gains,
)
from probes.analysis.evidence import (
    FALSE_ALARMS,
    Coverage,
    Record,
    TooFewError,
    discoveries,
    figure_in,
    spread,
)
from probes.analysis.falls import FEWEST_TESTS as FEWEST_BURSTS
from probes.analysis.falls import burst_of, drop_cause, token_bucket
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import FEWEST_TESTS, LevelPattern, levels_between_tests
from probes.analysis.patterns import DAY_S, HOUR_S, PERIOD_NAMES, autocorrelation, periodicity
from probes.analysis.steady_state import changes_in
from probes.metrics import Metric
from relayd.backtesting.history import ReplayHistory
from relayd.report.data import (
    ReportData,
    analysed,
    at_most_connections,
    grouped,
    in_time,
    median_of,
    provider_pair,
)
from relayd.report.document import Analysis, Section
from relayd.report.rendering import cumulative, ranges

RATES: dict[Metric, str] = {"per_flow_mbps": "one connection", "aggregate_mbps": "many connections"}
FEWEST_REPEATS = 3
MOST_SOURCES = 24
FIGURES: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
FEWEST_FOR_BOXES = 48
HORIZONS_S = {"1h": HOUR_S, "6h": 6 * HOUR_S}
MOST_LISTED = 10
MOST_TESTED = 20
FEWEST_PREDICTIONS = 30
"""With fewer there is no verdict on the bounds of a class."""
AIMED_AT = (0.85, 0.95)
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


@Analysis(
    "throughput",
    "How fast are transfers?",
    "Mean and standard deviation of each pair's median, by providers and VM types; coefficient "
    "of variation of repeated tests of one pair (Computer Networks 2016, WANs between "
    "public-cloud datacenters).",
    RATES,
)
def throughput(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell the rates of pairs, and their variation from test to test."""
    name, pairs = RATES[metric], data.pairs(metric)
    if not pairs:
        section.say(f"There is no test with {name}.")
        return
    medians = data.medians(metric)
    groups = grouped(
        ((provider_pair(*pair), data.vm_types(metric, rows[-1])), medians[pair])
        for pair, rows in pairs.items()
    )
    records = []
    for (providers, vm_types), values in sorted(groups.items()):
        found = spread(values, fewest=1)
        kept = {key: found[key] for key in ("mean", "deviation", "minimum", "maximum")}
        records.append({"providers": providers, "vm_types": vm_types, "pairs": len(values), **kept})
    section.figures[metric] = records
    section.table(
        f"Throughput of {name}, Mbit/s",
        records,
        "providers vm_types pairs mean:,.0f deviation:,.0f minimum:,.0f maximum:,.0f",
    )
    repeated = [
        spread(rows["value"])["cov"]
        for rows in pairs.values()
        if len(rows) >= FEWEST_REPEATS and rows["value"].mean() > 0
    ]
    if not repeated:
        section.say(
            f"No pair was tested {FEWEST_REPEATS} times with {name}: how much tests vary can't "
            "be told."
        )
        return
    middle, high = np.percentile(repeated, (50, 95)).tolist()
    section.tell(
        f"{metric}_cov_across_tests",
        {"pairs": len(repeated), "median": middle, "percentile_95": high},
        f"Tests of one pair with {name} vary by {{median:.1%}} (median coefficient of "
        f"variation over {{pairs}} pairs tested {FEWEST_REPEATS} times or more; "
        "95th percentile {percentile_95:.1%}).",
    )


@Analysis(
    "heterogeneity",
    "Is bandwidth the same towards every destination?",
    "Coefficient of variation of the rates from one source to its destinations, and fastest "
    "over slowest; HotCloud 2018, Figure 1a (one connection), Figure 2 and Table 3 (many).",
    RATES,
)
def heterogeneity(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether bandwidth differs by destination, for one flow and for many."""
    name = RATES[metric]
    rates = grouped((src, value) for (src, _), value in data.medians(metric).items())
    found = [homogeneity(row) for row in rates.values() if len(row) >= FEWEST_DESTINATIONS]
    if not found:
        section.say(
            f"With {name}: no conclusion. Three destinations of a source are needed, and no "
            "source has them."
        )
        return
    section.tell(
        metric,
        {
            "sources": len(found),
            "median_cov": median_of(found, "cov"),
            "homogeneous": sum(one["homogeneous"] for one in found),
            "median_fastest_over_slowest": median_of(found, "fastest_over_slowest"),
        },
        f"With {name}, rates from one source vary by {{median_cov:.0%}} over its destinations "
        "(median of {sources} sources; fastest over slowest {median_fastest_over_slowest:.1f}x); "
        "{homogeneous} of {sources} sources send at one rate to all (under 10 %).",
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


@Analysis(
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
        gains[words] = section.figures[name].pop("gains").tolist()
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
    section.samples = sum(len(data.samples_of(one)) for one in FIGURES)


@Analysis(
    "stability",
    "Does the time matter?",
    "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
    "random to tell patterns from chance (5 % false alarms a series). Dips at minutes 0 and 30: "
    "Predictability of cloud networks, 2021.",
    FIGURES,
)
def stability(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether figures change with the time of day, the week, or fixed minutes."""
    series = {
        pair: rows
        for pair, rows in data.pairs(metric).items()
        if len(rows) >= FEWEST_FOR_BOXES and np.median(rows["value"]) > 0
    }
    if not series:
        section.say(
            f"{metric}: no conclusion. {FEWEST_FOR_BOXES} samples of a pair are needed, and no "
            "pair has them."
        )
        return
    for name, period_s in PERIOD_NAMES.items():
        words = f"by {name.replace('_', ' ')}"
        folded = in_time(partial(periodicity, period_s=period_s))
        p_values = [one["p_value"] for one in analysed(series, folded)]
        if not p_values:
            section.say(
                f"{metric}, pattern {words}: no conclusion, no pair has enough samples spread over "
                "enough whole cycles."
            )
            continue
        section.tell(
            f"{metric}_{name}",
            {
                "pairs": len(p_values),
                "below_5_percent": float(np.mean(np.array(p_values) <= FALSE_ALARMS)),
                "with_a_pattern": discoveries(p_values),
            },
            f"{metric}, pattern {words}: {{with_a_pattern}} of {{pairs}} pairs have one (Benjamini "
            "and Hochberg at 5 %); chance alone explains 5 % of single tests, "
            "{below_5_percent:.0%} were below.",
        )
    ratios = np.concatenate([rows["value"] / np.median(rows["value"]) for rows in series.values()])
    hours = np.concatenate([rows["measured_at_s"] for rows in series.values()]) % DAY_S // HOUR_S
    section.charts.append(
        ranges(
            f"{metric} by hour of the day (UTC), each pair relative to its own median "
            f"({len(series)} pairs, {ratios.size:,} samples): median, 5th to 95th percentile.",
            "relative to the pair's median",
            [(f"{hour:02.0f} h", ratios[hours == hour]) for hour in np.unique(hours)],
        )
    )


@Analysis(
    "forecasts",
    "Can the next hours be foretold?",
    "Autocorrelation of each pair's series (Computer Networks 2016; Predictability of cloud "
    "networks, 2021); forecasts from the level, the time of day and the present, each day from "
    "the days before, against 'same as now'. A forecast counts where the time of day helps "
    "beyond chance.",
    FIGURES,
)
def forecasts(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether a link's next hours follow from its past."""
    pairs = data.pairs(metric)
    memories = analysed(pairs, in_time(autocorrelation))
    if not memories:
        section.say(f"{metric}: no conclusion, no pair has 48 samples at roughly equal steps.")
        return
    worth = [one["independent_samples"] / one["samples"] for one in memories]
    lasts_s = median_of(memories, "correlation_time_s")
    section.tell(
        f"{metric}_autocorrelation",
        {
            "pairs": len(memories),
            "remember": sum(memory["remembers"] for memory in memories),
            "median_of_next": median_of(memories, "next"),
            "median_correlation_time_s": lasts_s,
            "median_share_independent": float(np.median(worth)),
        },
        f"{metric}: samples of {{remember}} of {{pairs}} pairs resemble the one before beyond "
        "chance (median correlation {median_of_next:.2f}); a sample is news after "
        f"{lasts_s / 3600:.2g} h, so {{median_share_independent:.0%}} of samples are independent "
        "(medians).",
    )
    remembered = {(memory["src"], memory["dst"]) for memory in memories}
    regular = {pair: rows for pair, rows in pairs.items() if pair in remembered}
    for name, horizon_s in HORIZONS_S.items():
        ahead = f"{metric}, {name} ahead"
        found = analysed(regular, in_time(partial(forecast, horizon_s=horizon_s)))
        if not found:
            section.say(f"{ahead}: no conclusion, no pair has ten days of samples.")
            continue
        # Of many pairs tested, 5 % would pass by chance: only so many count.
        useful = sorted((one for one in found if one["useful"]), key=lambda one: one["p_value"])
        useful = useful[: discoveries([one["p_value"] for one in found])]
        skill = median_of(useful, "skill") if useful else None
        section.tell(
            f"{metric}_forecast_{name}",
            {"pairs": len(found), "foretold": len(useful), "median_skill": skill},
            f"{ahead}: {{foretold}} of {{pairs}} pairs can be foretold; errors are "
            "{median_skill:.0%} smaller than those of 'same as now' (median)."
            if useful
            else f"{ahead}: the time of day foretells none of {{pairs}} pairs.",
        )
        section.table(
            f"{ahead}, the most predictable first",
            sorted(useful, key=lambda one: -one["skill"])[:MOST_LISTED],
            "src dst skill:.0% now:,.4g expected:,.4g low:,.4g high:,.4g",
        )


@Analysis(
    "calibration",
    "Do the bounds hold?",
    "At the beginning of each day, links that were measured before are estimated from what was "
    "known by then; the median of what was then measured during the day either lies within "
    "their 90 % bounds or does not. Intervals of 95 % are Wilson's (1927); links that are "
    "measured often are not independent of themselves.",
    FIGURES[:2],
)
def calibration(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether 90 % bounds held 90 % of later measurements, by pair of providers.

    Each day, links are estimated from the samples of before.
    """
    held: Counter[str] = Counter()
    count: Counter[str] = Counter()
    history = ReplayHistory(data.of_all_times, data.catalogue, metric)
    connections = 1
    if metric == "aggregate_mbps":
        connections = max(2, history.most_connections or DEFAULT_CONNECTIONS)
    names = np.array([[provider_pair(a, b) for b in history.regions] for a in history.regions])
    days = history.steps(history.edges_s(DAY_S, data.since_s, None))
    for step in map(history.estimator(connections), days):
        foreseen = step.estimated & ~np.isnan(step.truth_gbps)
        count.update(names[foreseen].tolist())
        held.update(names[foreseen & step.covered].tolist())
    total = Coverage.of(held.total(), count.total())
    if total.predictions < FEWEST_PREDICTIONS or total.share is None:
        section.say(
            f"{metric}: no conclusion. {FEWEST_PREDICTIONS} measurements of links that had been "
            f"measured before are needed, and there are {total.predictions}."
        )
        return
    found = {name: Coverage.of(held[name], count[name]) for name in sorted(count)}
    section.figures[metric] = dumped({"all": total, "by_providers": found}, as_json=True)
    low, high = AIMED_AT
    verdict = "bounds are too narrow" if total.share < low else "as it should"
    verdict = "bounds are too wide" if total.share > high else verdict
    section.say(
        f"{metric}: {total.share:.0%} of {total.predictions:,} later measurements lay within the "
        f"90 % bounds of before: {verdict}."
    )
    records: list[Record] = []
    for name, one in {"all": total, **found}.items():
        record: Record = {"providers": name, "predictions": one.predictions}
        record |= {"in_bounds": "too few", "interval": ""}
        if one.predictions >= FEWEST_PREDICTIONS:
            interval = f"{one.low:.0%} to {one.high:.0%}"
            record |= {"in_bounds": f"{one.share:.0%}", "interval": interval}
        records.append(record)
    section.table(
        f"{metric}: later measurements within the 90 % bounds of before.",
        records,
        "providers predictions:,d in_bounds interval",
    )


@Analysis(
    "transients",
    "Do rates hold during a transfer?",
    "Lasting changes of level in the 1 s intervals of probes: initial bursts, falls from high "
    "to low with time and volume, paths between two levels (GLOBECOM 2015, WANs between "
    "public-cloud datacenters); two levels from test to test of one pair, told by their order "
    "in time (runs, Wald and Wolfowitz 1940) from one shift that lasts.",
)
def transients(section: Section, data: ReportData) -> None:
    """Tell whether rates hold from a test's first to its last second."""
    for metric in RATES:
        _inside_tests(section, data, metric)
        _between_tests(section, data, metric)


def _inside_tests(section: Section, data: ReportData, metric: Metric) -> None:
    name = RATES[metric]
    tests = list(data.tests(metric, "intervals"))
    section.samples += len(tests)
    if not tests:
        section.say(f"No test with {name} kept its intervals.")
        return
    changes = [(test, change) for test in tests for change in changes_in(test.read_detail())]
    by_pattern = grouped(
        ((provider_pair(test.src, test.dst), change["pattern"]), change) for test, change in changes
    )
    of_providers = Counter(provider_pair(test.src, test.dst) for test in tests)
    records: list[Record] = [
        {"providers": providers, "pattern": pattern, "found": len(found), "tests": count}
        | {
            key.replace("at_", "after_"): median_of(found, key)
            for key in ("at_s", "at_gb", "before_mbps", "after_mbps")
        }
        for providers, count in sorted(of_providers.items())
        for pattern in CHANGES
        if (found := by_pattern.get((providers, pattern)))
    ]
    drops = grouped(
        ((test.src, test.dst), (change["at_s"], change["at_gb"]))
        for test, change in changes
        if change["pattern"] == "drop"
    )
    causes = [
        {"src": src, "dst": dst, "cause": drop_cause(found)} for (src, dst), found in drops.items()
    ]
    section.figures[f"{metric}_within_tests"] = {
        "tests": len(tests),
        "changes": records,
        "drop_causes": causes,
    }
    if not records:
        section.say(f"The rate held in all {len(tests)} tests with {name}.")
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
    share = sum(record["found"] for record in records) / len(tests)
    section.say(f"In tests with {name} there are {share:.2g} lasting changes a test.")
    for cause in ("time", "volume"):
        if pairs := sum(one["cause"] == cause for one in causes):
            section.say(
                f"Paths whose rate falls after a certain {cause}, whatever the rate: {pairs}."
            )


def _between_tests(section: Section, data: ReportData, metric: Metric) -> None:
    name, pairs = RATES[metric], data.pairs(metric)
    most = {pair: at_most_connections(rows)["value"] for pair, rows in pairs.items()}
    asked = {pair: rates for pair, rates in most.items() if len(rates) >= FEWEST_TESTS}
    if not asked:
        section.say(f"No pair was tested {FEWEST_TESTS} times with {name}.")
        return
    records: list[Record] = [
        {"src": src, "dst": dst, **levels._asdict()}
        for (src, dst), rates in asked.items()
        if (levels := levels_between_tests(rates.tolist()))
    ]
    kept = ("src", "dst", "low_mbps", "high_mbps")
    section.figures[f"{metric}_between_tests"] = {"pairs": len(asked)} | {
        key: [{name: one[name] for name in kept} for one in records if one["pattern"] == pattern]
        for pattern, key in (("two-level", "two_levels"), ("shift", "shifts"))
    }
    counts = Counter(record["pattern"] for record in records)
    section.say(
        f"Of {len(asked)} pairs with {name}, {counts['two-level']} are at one of two levels "
        f"from test to test, {counts['shift']} went from one to another for good, and of "
        f"{counts['undecided']} the order of tests does not tell which."
    )
    section.table(
        f"Pairs with two levels, {name}, Mbit/s",
        (record | {"what": LEVELS[record["pattern"]]} for record in records[:MOST_TESTED]),
        "src dst low_mbps:,.0f high_mbps:,.0f changes what",
    )


@Analysis(
    "buckets",
    "Do VMs burst, and when again?",
    "Tests of one VM, at any destination, whose rate fell: tokens are what went beyond the "
    "lasting rate; tests after short pauses find less, which is how fast the bucket fills "
    "(burstable VMs: HotCloud 2018; the spike at the start: Computer Networks 2015).",
)
def buckets(section: Section, data: ReportData) -> None:
    """Tell the volume that VMs may send before their rate falls, and the rate of its return."""
    tests = [test for metric in RATES for test in data.tests(metric, "intervals")]
    section.samples = len(tests)
    by_vm = grouped(
        ((test.src + test.src_zone, test.src_vm or "?"), burst)
        for test in tests
        if (burst := burst_of(test)) is not None
    )
    records: list[Record] = []
    for (place, vm_type), bursts in sorted(by_vm.items()):
        with suppress(TooFewError):
            bucket = token_bucket(sorted(bursts))._asdict()
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


@Analysis(
    "transfers",
    "How alike are transfers of one file?",
    "Times of repeated transfers of the same volume (as 105 MB by scp ten times an hour: "
    "Predictability of cloud networks, 2021): spread, and the 95th percentile over the median, "
    "which is what a cautious deadline adds.",
)
def transfers(section: Section, data: ReportData) -> None:
    """Tell the variation of repeated transfers of one file."""
    tests = list(data.tests("transfer_s", "detail"))
    section.samples = len(tests)
    times = grouped(
        ((test.src, test.dst, volume_gb), test.value)
        for test in tests
        if (volume_gb := figure_in(test.read_detail(), "volume_gb")) is not None
    )
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
    section.say(
        f"Times of {len(records)} repeated transfers vary by {median_of(records, 'cov'):.1%} "
        "(median coefficient of variation); of the least steady, one in twenty takes over "
        f"{records[0]['percentile_95_over_median']:.2f}x the median."
    )
    section.table(
        "Transfers of one volume, the least steady first",
        records[:MOST_TESTED],
        "src dst volume_gb:,.4g transfers median_s:.3g cov:.1% percentile_95_over_median:.2f",
    )

"""Speed of links and VMs, and its changes in time: throughput, relays, patterns, transfers."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress

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
    spread,
)
from probes.analysis.falls import FEWEST_TESTS as FEWEST_BURSTS
from probes.analysis.falls import BurstTest, burst_of, drop_cause, token_bucket
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import FEWEST_TESTS, LevelPattern, levels_between_tests
from probes.analysis.patterns import (
    DAY_S,
    HOUR_S,
    PERIOD_NAMES,
    autocorrelation,
    periodicity,
    strongest_period,
)
from probes.analysis.steady_state import changes_in
from probes.samples import Metric
from relayd.backtesting.history import ReplayHistory
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, analysis
from relayd.report.rendering import cumulative, ranges

RATES: dict[Metric, str] = {"per_flow_mbps": "one connection", "aggregate_mbps": "many connections"}
FEWEST_REPEATS = 3
MOST_SOURCES = 24
METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
ANY_PERIOD = "any_period"
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
    "stability",
    "Does the time matter?",
    "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
    "random to tell patterns from chance (5 % false alarms a series). Any other period: the "
    "strongest wave of a periodogram against red noise. Dips at minutes 0 and 30: "
    "Predictability of cloud networks, 2021.",
    METRICS,
)
def stability(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether figures change with the time of day, the week, or fixed minutes."""
    series = [
        (rows["measured_at_s"], rows["value"])
        for _, _, rows in data.pairs(metric)
        if len(rows) >= FEWEST_FOR_BOXES and np.median(rows["value"]) > 0
    ]
    if not series:
        section.say(
            f"{metric}: no conclusion. {FEWEST_FOR_BOXES} samples of a pair are needed, and no "
            "pair has them."
        )
        return
    p_values: dict[str, list[float]] = {name: [] for name in (*PERIOD_NAMES, ANY_PERIOD)}
    for times, values in series:
        for name, period_s in PERIOD_NAMES.items():
            with suppress(TooFewError):
                p_values[name].append(periodicity(times, values, period_s)["p_value"])
        with suppress(TooFewError):
            p_values[ANY_PERIOD].append(strongest_period(times, values)["p_value"])
    for name, found in p_values.items():
        _say_pattern(section, metric, name, found)
    ratios = np.concatenate([values / np.median(values) for _, values in series])
    hours = np.concatenate([times for times, _ in series]) % DAY_S // HOUR_S
    rows = [(f"{hour:02} h", ratios[hours == hour]) for hour in range(24)]
    section.charts.append(
        ranges(
            f"{metric} by hour of the day (UTC), each pair relative to its own median "
            f"({len(series)} pairs, {ratios.size:,} samples): median, 5th to 95th percentile.",
            "relative to the pair's median",
            [(hour, of_hour) for hour, of_hour in rows if len(of_hour)],
        )
    )


def _say_pattern(section: Section, metric: str, name: str, p_values: list[float]) -> None:
    words = "of any period" if name == ANY_PERIOD else f"by {name.replace('_', ' ')}"
    if not p_values:
        section.say(
            f"{metric}, pattern {words}: no conclusion, no pair has enough samples spread over "
            "enough whole cycles."
        )
        return
    count, surely = len(p_values), discoveries(p_values)
    alarms = float(np.mean(np.array(p_values) <= FALSE_ALARMS))
    figures = {"pairs": count, "below_5_percent": alarms, "with_a_pattern": surely}
    section.figures[f"{metric}_{name}"] = figures
    section.say(
        f"{metric}, pattern {words}: {surely} of {count} pairs have one (Benjamini and "
        f"Hochberg at 5 %); chance alone explains 5 % of single tests, {alarms:.0%} were below."
    )


@analysis(
    "forecasts",
    "Can the next hours be foretold?",
    "Autocorrelation of each pair's series (Computer Networks 2016; Predictability of cloud "
    "networks, 2021); forecasts from the level, the time of day and the present, each day from "
    "the days before, against 'same as now'. A forecast counts where the time of day helps "
    "beyond chance.",
    METRICS,
)
def forecasts(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether a link's next hours follow from its past."""
    memories: list[Record] = []
    found: dict[str, list[Record]] = {name: [] for name in HORIZONS_S}
    for src, dst, rows in data.pairs(metric):
        with suppress(TooFewError):
            memories.append(autocorrelation(rows["measured_at_s"], rows["value"]))
            for name, horizon_s in HORIZONS_S.items():
                ahead = forecast(rows["measured_at_s"], rows["value"], horizon_s)
                found[name].append({"src": src, "dst": dst, **ahead})
    if not memories:
        section.say(f"{metric}: no conclusion, no pair has 48 samples at roughly equal steps.")
        return
    _say_memory(section, metric, memories)
    for name, of_pairs in found.items():
        _say_forecasts(section, metric, name, of_pairs)


def _say_memory(section: Section, metric: str, memories: list[Record]) -> None:
    remember = sum(memory["remembers"] for memory in memories)
    next_one, lasts_s, independent, samples = (
        np.array([memory[key] for memory in memories])
        for key in ("next", "correlation_time_s", "independent_samples", "samples")
    )
    worth = float(np.median(independent / samples))
    correlation, usual_s = float(np.median(next_one)), float(np.median(lasts_s))
    section.figures[f"{metric}_autocorrelation"] = {
        "pairs": len(memories),
        "remember": remember,
        "median_of_next": correlation,
        "median_correlation_time_s": usual_s,
        "median_share_independent": worth,
    }
    section.say(
        f"{metric}: samples of {remember} of {len(memories)} pairs resemble the one before beyond "
        f"chance (median correlation {correlation:.2f}); a sample is news after "
        f"{usual_s / 3600:.2g} h, so {worth:.0%} of samples are independent (medians)."
    )


def _say_forecasts(section: Section, metric: str, name: str, found: list[Record]) -> None:
    if not found:
        section.say(f"{metric}, {name} ahead: no conclusion, no pair has ten days of samples.")
        return
    # Of many pairs tested, 5 % would pass by chance: only so many count.
    surely = discoveries([ahead["p_value"] for ahead in found])
    useful = sorted((ahead for ahead in found if ahead["useful"]), key=lambda a: a["p_value"])
    useful = useful[:surely]
    skill = float(np.median([ahead["skill"] for ahead in useful])) if useful else None
    figures = {"pairs": len(found), "foretold": len(useful), "median_skill": skill}
    section.figures[f"{metric}_forecast_{name}"] = figures
    if skill is None:
        section.say(
            f"{metric}, {name} ahead: the time of day foretells none of {len(found)} pairs."
        )
        return
    section.say(
        f"{metric}, {name} ahead: {len(useful)} of {len(found)} pairs can be foretold; errors are "
        f"{skill:.0%} smaller than those of 'same as now' (median)."
    )
    section.table(
        f"{metric}, {name} ahead, the most predictable first",
        sorted(useful, key=lambda ahead: -ahead["skill"])[:MOST_LISTED],
        "src dst skill:.0% now:,.4g expected:,.4g low:,.4g high:,.4g",
    )


@analysis(
    "calibration",
    "Do the bounds hold?",
    "At the beginning of each day, links that were measured before are estimated from what was "
    "known by then; the median of what was then measured during the day either lies within "
    "their 90 % bounds or does not. Intervals of 95 % are Wilson's (1927); links that are "
    "measured often are not independent of themselves.",
    METRICS[:2],
)
def calibration(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether 90 % bounds held 90 % of later measurements, by pair of providers."""
    held, count = _predictions(data, metric)
    total = Coverage.of(sum(held.values()), sum(count.values()))
    if total.predictions < FEWEST_PREDICTIONS or total.share is None:
        section.say(
            f"{metric}: no conclusion. {FEWEST_PREDICTIONS} measurements of links that had been "
            f"measured before are needed, and there are {total.predictions}."
        )
        return
    found = {name: Coverage.of(held[name], count[name]) for name in sorted(count)}
    section.figures[metric] = dumped({"all": total, "by_providers": found}, as_json=True)
    low, high = AIMED_AT
    verdict = (
        "bounds are too narrow"
        if total.share < low
        else "bounds are too wide"
        if total.share > high
        else "as it should"
    )
    section.say(
        f"{metric}: {total.share:.0%} of {total.predictions:,} later measurements lay within the "
        f"90 % bounds of before: {verdict}."
    )
    section.table(
        f"{metric}: later measurements within the 90 % bounds of before.",
        (_coverage_record(name, one) for name, one in {"all": total, **found}.items()),
        "providers predictions:,d in_bounds interval",
    )


def _predictions(data: ReportData, metric: Metric) -> tuple[Counter[str], Counter[str]]:
    """Count the later measurements within the bounds of before, and all later measurements.

    By pair of providers. Each day, links are estimated from the samples of before.
    """
    held: Counter[str] = Counter()
    count: Counter[str] = Counter()
    history = ReplayHistory(data.samples, data.catalogue, metric)
    connections = 1
    if metric == "aggregate_mbps":
        connections = max(2, history.most_connections or DEFAULT_CONNECTIONS)
    estimated = history.estimator(connections)
    names = np.array([[provider_pair(a, b) for b in history.regions] for a in history.regions])
    for step in map(estimated, history.steps(history.edges_s(DAY_S, data.since_s, None))):
        foreseen = step.estimated & ~np.isnan(step.truth_gbps)
        count.update(names[foreseen].tolist())
        held.update(names[foreseen & step.covered].tolist())
    return held, count


def _coverage_record(name: str, coverage: Coverage) -> Record:
    record = {"providers": name, "predictions": coverage.predictions}
    if coverage.share is None or coverage.predictions < FEWEST_PREDICTIONS:
        return record | {"in_bounds": "too few", "interval": ""}
    interval = f"{coverage.low:.0%} to {coverage.high:.0%}"
    return record | {"in_bounds": f"{coverage.share:.0%}", "interval": interval}


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
        (record | {"what": LEVELS[record["pattern"]]} for record in records[:MOST_TESTED]),
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
        records[:MOST_TESTED],
        "src dst volume_gb:,.4g transfers median_s:.3g cov:.1% percentile_95_over_median:.2f",
    )

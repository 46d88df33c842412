"""Comparisons of links, and of VMs: directions, addresses, caps, latency, lost packets, fees."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np

from planner.model.answer import dumped
from planner.model.errors import DataError
from planner.model.link_states import Pair
from probes.analysis.comparisons import (
    FEWEST_PAIRS,
    collapses,
    fees_against_performance,
    first_packets,
    paired_difference,
    vm_spread,
    zone_pairs,
)
from probes.analysis.evidence import Record, TooFewError, discoveries, figure_in, spread
from probes.analysis.fleet_caps import CAP_NAMES
from probes.analysis.geodesic import GLASS, LIGHT_KM_PER_MS, detours, propagation
from probes.analysis.patterns import occurrences
from probes.analysis.udp import FEWEST_RATES, rate_sweep
from probes.metrics import METRICS, Metric
from probes.samples import ADDRESSES, Rows
from relayd.report.data import ReportData, analysed, grouped, median_of, provider_pair
from relayd.report.document import Analysis, Section
from relayd.report.rendering import cumulative, points
from relayd.report.sections.speed import FIGURES, MOST_LISTED, RATES

TOGETHER_S = 1800.0
"""Tests of the two directions within this time are taken as made together."""
BAND_MS = 50
PACKETS: tuple[Metric, ...] = ("loss_pct", "jitter_ms")


@Analysis(
    "directions",
    "Are both directions alike?",
    "Tests of both directions within half an hour, compared pair by pair with signs drawn at "
    "random; one-way collapses below 10 Mbit/s while the other direction went on (Computer "
    "Networks 2016).",
    RATES,
)
def directions(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether a pair is as fast in one direction as in the other."""
    pairs, medians = data.pairs(metric), data.medians(metric)
    ratios: list[float] = []
    verdicts: list[bool] = []
    down: list[Record] = []
    for (src, dst), rows in pairs.items():
        back = pairs.get((dst, src))
        if back is None or src > dst:
            continue
        ratios.append(float(np.divide(medians[src, dst], medians[dst, src])))
        there, other = _together(rows, back)
        for a, b, first, second in ((src, dst, there, other), (dst, src, other, there)):
            moments = collapses(first["measured_at_s"], first["value"], second["value"])
            down += [{"src": a, "dst": b, **moment} for moment in moments]
        with suppress(TooFewError):
            verdicts.append(paired_difference(there["value"], other["value"])["differs"])
    if not ratios:
        section.say(f"{metric}: no pair was tested in both directions.")
        return
    larger = np.exp(np.abs(np.log(np.array(ratios))))
    section.tell(
        metric,
        {
            "pairs": len(ratios),
            "median_ratio": float(np.median(larger)),
            "share_over_1_5": float((larger > 1.5).mean()),
            "tested": len(verdicts),
            "differing": sum(verdicts),
            "collapses": len(down),
        },
        f"{metric}: the faster direction of a pair is {{median_ratio:.2f}}x the other "
        "(median of {pairs} pairs); {share_over_1_5:.0%} of pairs differ by more than 1.5x. "
        "Of {tested} pairs tested often enough, {differing} differ beyond chance. "
        "{collapses} one-way collapses.",
    )
    caption = f"{metric}: faster over slower direction of each pair."
    section.charts.append(cumulative(caption, "ratio", {metric: larger}, log=True))
    for one in down:
        one["hours"] = (one["until_s"] - one["from_s"]) / 3600
    section.table(
        f"One-way collapses of {metric}, the longest first",
        sorted(down, key=lambda one: -one["hours"])[:MOST_LISTED],
        "src dst hours:.1f samples mbps:.1f",
    )


def _together(rows: Rows, back: Rows) -> tuple[Rows, Rows]:
    """Pair tests of one direction with tests of the other that were near in time."""
    at_s, back_s = rows["measured_at_s"], back["measured_at_s"]
    nearest = np.searchsorted(back_s, at_s).clip(0, len(back) - 1)
    before = (nearest - 1).clip(0)
    nearest = np.where(at_s - back_s[before] < back_s[nearest] - at_s, before, nearest)
    close = np.abs(back_s[nearest] - at_s) <= TOGETHER_S
    return rows[close], back[nearest[close]]


@Analysis(
    "addresses",
    "Do private addresses do better than public ones?",
    "Medians of each link over both kinds, compared link by link with signs drawn at random "
    "(Computer Networks 2016). `relayd probe --addresses` chooses the kind.",
)
def addresses(section: Section, data: ReportData) -> None:
    """Tell whether private addresses carry more, or are nearer, than public ones."""
    kinds = {kind: ADDRESSES.index(kind) for kind in ("private", "public")}
    for metric in FIGURES:
        records: list[Record] = []
        for (src, dst, _), part in data.measured.of_metric(metric).groups():
            of = {kind: part.rows["value"][part.rows["address"] == k] for kind, k in kinds.items()}
            if src == dst or not all(map(len, of.values())):
                continue
            section.samples += sum(map(len, of.values()))
            medians = {kind: float(np.median(values)) for kind, values in of.items()}
            ratio = medians["private"] / medians["public"] if medians["public"] else np.inf
            records.append({"src": src, "dst": dst, **medians, "ratio": ratio})
        if not records:
            section.say(f"{metric}: no link was tested over both kinds of address.")
            continue
        section.table(
            f"{metric} over private and public addresses, where they differ most",
            sorted(records, key=lambda one: -_apart(one["ratio"]))[:MOST_LISTED],
            "src dst private:.4g public:.4g ratio:.2f",
        )
        try:
            found = paired_difference(*([one[kind] for one in records] for kind in kinds))
        except TooFewError:
            section.say(
                f"{metric}: {len(records)} links were tested over both kinds; at least "
                f"{FEWEST_PAIRS} are needed to tell a difference from chance."
            )
            continue
        words = "more than chance gives" if found["differs"] else "no more than chance gives"
        section.tell(
            metric,
            {
                "legs": len(records),
                "private_over_public": found["ratio"],
                "p_value": found["p_value"],
                "differs": found["differs"],
            },
            f"{metric}: private over public is {{private_over_public:.2f}} (geometric mean of "
            f"{{legs}} links), {words} (p = {{p_value:.3f}}).",
        )
    section.concluded = bool(section.figures)


def _apart(ratio: float) -> float:
    return abs(np.log(ratio)) if 0 < ratio < np.inf else 0.0


@Analysis(
    "caps",
    "What do VMs carry at most?",
    "Caps from one-to-many and many-to-one tests, by VM type; how VMs of one type differ, and "
    "the first percentile (GLOBECOM 2015).",
)
def caps(section: Section, data: ReportData) -> None:
    """Tell the caps of VMs of each type, and their differences."""
    records: list[Record] = []
    for metric, name in CAP_NAMES.items():
        section.samples += len(data.samples_of(metric))
        columns = map(data.samples_of(metric).column, ("src", "src_zone", "src_vm", "value"))
        rates = grouped(
            # A VM is its region and zone.
            (f"{region.partition(':')[0]}:{vm or '?'}", (region + zone, value))
            for region, zone, vm, value in zip(*columns, strict=True)
        )
        for vm_type, of_type in sorted(rates.items()):
            by_vm = grouped(of_type)
            values = spread([np.median(of_vm) for of_vm in by_vm.values()], fewest=1)
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


@Analysis(
    "sweeps",
    "What arrives of what is sent?",
    "UDP tests of one link at growing rates: received against truly sent, the sender's cap, "
    "the flattening edge and the penalty edge (Network throughput in Amazon EC2, Computer "
    "Networks 2015); the best 5 s of any test as the path's capacity (Computer Networks 2016).",
)
def sweeps(section: Section, data: ReportData) -> None:
    """Find the sending rates from which the received rate stops following."""
    tests = list(data.tests("udp_mbps", "detail"))
    section.samples = len(tests)
    steps = []
    best: dict[Pair, tuple[float, bool]] = {}
    for test in tests:
        link, detail = (test.src, test.dst), test.read_detail()
        sent, received, asked = (
            figure_in(detail, name) for name in ("offered_mbps", "mean_mbps", "asked_mbps")
        )
        if sent is not None:
            steps.append(
                (link, (asked or sent, sent, test.value if received is None else received))
            )
        bound = detail.get("lower_bound") is not False
        best[link] = max(best.get(link, (0.0, True)), (test.value, bound))
    if best:
        reached = [mbps for mbps, is_bound in best.values() if not is_bound]
        over = f", {min(reached):,.0f} to {max(reached):,.0f} Mbit/s" if reached else ""
        section.figures["capacity"] = [
            {"src": src, "dst": dst, "mbps": mbps, "is_lower_bound": is_bound}
            for (src, dst), (mbps, is_bound) in best.items()
        ]
        section.say(
            f"Of {len(best)} links, tests of {len(reached)} reached the capacity of the path"
            f"{over}; on the others all that was sent arrived, so their figure is a lower bound."
        )
    records = analysed(grouped(steps), lambda rates: rate_sweep(*np.array(rates).T))
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


@Analysis(
    "latency",
    "Does distance explain latency?",
    "RTT against the great circle: the bound 2 d / c, the remainder in bands of 50 ms, and "
    "detours: RTTs near the sum of two links that lead out of the way (Computer Networks "
    "2016).",
    ("rtt_ms",),
)
def latency(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell how far distance explains round-trip times."""
    medians = data.medians(metric)
    regions = {name: data.catalogue.region(name) for pair in medians for name in pair}
    found = [
        {"src": src, "dst": dst, "rtt_ms": rtt_ms, **compared}
        for (src, dst), rtt_ms in medians.items()
        if (compared := propagation(regions[src], regions[dst], rtt_ms)) is not None
    ]
    if not found:
        section.say("No round-trip time of regions with known places.")
        return
    _say_bands(section, found)
    out_of_the_way = section.conclude("detours", detours, regions, medians)
    if out_of_the_way is not None:
        section.say(f"{len(out_of_the_way)} pairs look like detours.")
        section.table(
            "Detours, the slowest first",
            out_of_the_way[:MOST_LISTED],
            "src dst through rtt_ms:.0f sum_ms:.0f",
        )
    farthest = max(p["distance_km"] for p in found)
    section.charts.append(
        points(
            f"Round-trip time against great-circle distance, {len(found)} pairs.",
            "distance, km",
            "RTT, ms",
            [(p["distance_km"], p["rtt_ms"], provider_pair(p["src"], p["dst"])) for p in found],
            line=[(0, 0), (farthest, farthest * 2 * GLASS / LIGHT_KM_PER_MS)],
            line_name="light in straight fibre",
        )
    )
    _say_zones(section, data)


def _say_bands(section: Section, found: list[Record]) -> None:
    beyond_ms = (max(0.0, p["rtt_ms"] - p["vacuum_ms"]) for p in found)
    bands = sorted(Counter(int(rest // BAND_MS) * BAND_MS for rest in beyond_ms).items())
    names = {f"{band}-{band + BAND_MS} ms": count for band, count in bands}
    stretch = [p["stretch"] for p in found if p["stretch"] is not None]
    median = float(np.median(stretch)) if stretch else None
    section.figures |= {"bands": names, "median_stretch": median}
    stretched = "" if median is None else f"RTT is {median:.2f}x that of light in straight fibre "
    section.say(
        f"Of {len(found)} pairs, {stretched}"
        "(median); beyond the bound of light in a vacuum remain "
        + ", ".join(f"{name} for {count}" for name, count in names.items())
        + " pairs."
    )
    if impossible := [p for p in found if not p["possible"]]:
        section.say(
            f"{len(impossible)} pairs are faster than light: a wrong place in the catalogue or a "
            f"wrong measurement, such as {impossible[0]['src']} > {impossible[0]['dst']}."
        )


def _say_zones(section: Section, data: ReportData) -> None:
    """Compare the series of each pair of zones of a link, where there are several.

    Half-hourly campaigns measure zones one after the other: a time is a half hour.
    """
    compared: list[Record] = []
    for (src, dst, _), part in data.samples_of("rtt_ms").groups():
        rows = part.rows
        zones = rows["src_zone"].astype(np.int64) << 32 | rows["dst_zone"]
        kinds, zone = np.unique(zones, return_inverse=True)
        if src == dst or len(kinds) < 2:
            continue
        _, at = np.unique(rows["measured_at_s"] // TOGETHER_S, return_inverse=True)
        table = np.full((len(kinds), int(at.max()) + 1), np.nan)
        table[zone, at] = rows["value"]
        series = {str(kind): one for kind, one in zip(kinds.tolist(), table, strict=True)}
        compared += section.conclude("zones", zone_pairs, series) or ()
    if compared:
        alike = sum(pair["alike"] for pair in compared)
        section.figures["zones"] = {"pairs_of_zones": len(compared), "alike": alike}
        section.say(
            f"Zones: {alike} of {len(compared)} pairs of zones see the same RTT (CV-RMSE under "
            "0.2)."
        )


@Analysis(
    "packets",
    "Are packets lost or late?",
    "Loss and jitter of pings by pair of providers, and loss as what happens in some samples: "
    "how many, and whether they come together; first packets of runs against the others "
    "(Predictability of cloud networks, 2021).",
)
def packets(section: Section, data: ReportData) -> None:
    """Name the links on which packets are lost or late."""
    for metric in PACKETS:
        name = METRICS[metric].label
        medians = data.medians(metric)
        section.samples += len(data.samples_of(metric))
        if not medians:
            section.say(f"There is no sample of {name.partition(',')[0]}.")
            continue
        groups = grouped((provider_pair(*pair), value) for pair, value in medians.items())
        worst = sorted(medians.items(), key=lambda item: -item[1])[:MOST_LISTED]
        section.figures[metric] = {
            "pairs": len(medians),
            "mean": float(np.mean(list(medians.values()))),
            "worst": [{"src": a, "dst": b, "value": value} for (a, b), value in worst],
        }
        section.table(
            f"{name.capitalize()} (medians of pairs)",
            (
                {"providers": pair, "pairs": len(v), "mean": np.mean(v), "most": max(v)}
                for pair, v in sorted(groups.items())
            ),
            "providers pairs mean:.3g most:.3g",
        )
        if metric == "loss_pct":
            _say_occurrences(section, data)
    _say_first_packets(section, data)


def _say_occurrences(section: Section, data: ReportData) -> None:
    """Tell the number of samples with lost packets: medians of pairs do not see rare loss."""
    records = analysed(data.pairs("loss_pct"), lambda rows: occurrences(rows["value"]))
    samples, lossy = (sum(one[key] for one in records) for key in ("samples", "occurrences"))
    lossy_pairs = [record for record in records if record["occurrences"]]
    section.tell(
        "loss_occurrences",
        {
            "samples": samples,
            "lossy": lossy,
            "pairs": len(records),
            "pairs_without_loss": len(records) - len(lossy_pairs),
            "pairs_with_clusters": sum(record["clustered"] for record in lossy_pairs),
        },
        "{pairs_without_loss} of {pairs} pairs lost nothing in any sample; {lossy:,} of "
        f"{{samples:,}} samples lost packets ({lossy / samples:.2%}). On {{pairs_with_clusters}} "
        f"of {len(lossy_pairs)} pairs with loss it comes together in time more than by chance.",
    )
    section.table(
        "Samples with loss, the most frequent first",
        sorted(lossy_pairs, key=lambda record: -record["share"])[:MOST_LISTED],
        "src dst samples:,d occurrences:,d share:.2% median_of_occurrences:.3g worst:.3g",
    )


def _say_first_packets(section: Section, data: ReportData) -> None:
    """Name the links on which the first packet of a run takes longer than the others."""
    runs = grouped(
        ((test.src, test.dst), (first_ms, test.value))
        for test in data.tests("rtt_ms", "detail")
        if (first_ms := figure_in(test.read_detail(), "first_ms")) is not None
    )
    records = analysed(runs, lambda times_ms: first_packets(*np.array(times_ms).T))
    if not records:
        section.say("First packets: no conclusion, no pair has six runs that keep them.")
        return
    # Of many pairs tested, 5 % would pass by chance: only so many count.
    slow = sorted((one for one in records if one["first_differs"]), key=lambda one: one["p_value"])
    slow = slow[: discoveries([one["p_value"] for one in records])]
    kept = {"src": "src", "dst": "dst", "over_others": "first_over_others", "extra_ms": "extra_ms"}
    extra = f", by {median_of(slow, 'extra_ms'):.3g} ms (median)" if slow else ""
    section.tell(
        "first_packets",
        {
            "pairs": len(records),
            "slow": [{name: one[key] for name, key in kept.items()} for one in slow[:MOST_LISTED]],
            "with_slow_first": len(slow),
        },
        "The first packet of a run takes longer than the others on {with_slow_first} of {pairs} "
        f"pairs{extra}.",
    )


@Analysis(
    "fees",
    "Does a higher price buy speed?",
    "Rank correlation over source regions of the first-tier egress fee and the throughput "
    "with many connections, medians over destinations (Computer Networks 2016).",
    ("aggregate_mbps",),
)
def fees(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether expensive egress is faster."""
    links = []
    for (src, dst), mbps in data.medians(metric).items():
        usd_per_gb = np.nan
        with suppress(DataError):
            usd_per_gb = data.catalogue.egress_price(src, dst).tiers[0].usd_per_gb
        links.append((src, (usd_per_gb, mbps)))
    rows = [
        (float(np.nanmedian(prices)), float(np.median(rates)), src.partition(":")[0])
        for src, of_source in grouped(links).items()
        for prices, rates in [np.array(of_source).T]
        if np.isfinite(prices).any()
    ]
    prices, rates = ([row[at] for row in rows] for at in (0, 1))
    found = section.conclude("fees_against_throughput", fees_against_performance, prices, rates)
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

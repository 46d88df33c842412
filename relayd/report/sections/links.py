"""How links compare: directions, kinds of address, latency and distance, lost packets."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from typing import Any

import numpy as np

from planner.model.answer import dumped
from probes.analysis.asymmetry import FEWEST_PAIRS, Collapse, collapses, paired_difference
from probes.analysis.consistency import first_packets
from probes.analysis.evidence import TooFewError, discoveries
from probes.analysis.geodesic import GLASS, Propagation, detours, propagation
from probes.analysis.series.occurrences import occurrences
from probes.analysis.zones import zone_pairs
from probes.samples import Metric
from relayd.report.charts import cumulative, points
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, analysis
from relayd.report.sections.rates import RATES

TOGETHER_S = 1800.0
"""Tests of the two directions within this time are taken as made together."""
MOST_LISTED = 10
BAND_MS = 50


@analysis(
    "directions",
    "Are both directions alike?",
    "Tests of both directions within half an hour, compared pair by pair with signs drawn at "
    "random; one-way collapses below 10 Mbit/s while the other direction went on (Computer "
    "Networks 2016).",
)
def directions(section: Section, data: ReportData) -> None:
    """Answer whether a pair is as fast in one direction as in the other."""
    for metric in RATES:
        section.samples += data.count(metric)
        rows_of = {(src, dst): rows for src, dst, rows in data.pairs(metric)}
        ratios: list[float] = []
        verdicts: list[bool] = []
        down: list[tuple[str, str, Collapse]] = []
        for (src, dst), rows in rows_of.items():
            back = rows_of.get((dst, src))
            if back is None or src > dst:
                continue
            ratios.append(float(np.median(rows["value"]) / np.median(back["value"])))
            there, other = _together(rows, back)
            for a, b, first, second in ((src, dst, there, other), (dst, src, other, there)):
                found = collapses(first["measured_at_s"], first["value"], second["value"])
                down += [(a, b, collapse) for collapse in found]
            with suppress(TooFewError):
                verdicts.append(paired_difference(there["value"], other["value"]).differs)
        if not ratios:
            section.say(f"{metric}: no pair was tested in both directions.")
            continue
        larger = np.exp(np.abs(np.log(np.array(ratios))))
        median, share = float(np.median(larger)), float((larger > 1.5).mean())
        section.figures[metric] = {
            "pairs": len(ratios),
            "median_ratio": median,
            "share_over_1_5": share,
            "tested": len(verdicts),
            "differing": sum(verdicts),
            "collapses": len(down),
        }
        section.say(
            f"{metric}: the faster direction of a pair is {median:.2f}x the other "
            f"(median of {len(ratios)} pairs); {share:.0%} of pairs differ by more than 1.5x. "
            f"Of {len(verdicts)} pairs tested often enough, {sum(verdicts)} differ beyond "
            f"chance. {len(down)} one-way collapses."
        )
        section.charts.append(
            cumulative(
                f"{metric}: faster over slower direction of each pair.",
                "ratio",
                {metric: list(larger)},
                log=True,
            )
        )
        _list_collapses(section, metric, down)


def _list_collapses(section: Section, metric: str, down: list[tuple[str, str, Collapse]]) -> None:
    longest = sorted(down, key=lambda item: item[2].from_s - item[2].until_s)[:MOST_LISTED]
    section.table(
        f"One-way collapses of {metric}, the longest first",
        (
            {"src": a, "dst": b, "hours": (c.until_s - c.from_s) / 3600, "mbps": c.mbps}
            | {"samples": c.samples}
            for a, b, c in longest
        ),
        {
            "from": ("src", ""),
            "to": ("dst", ""),
            "hours": ("hours", ".1f"),
            "samples": ("samples", ""),
            "Mbit/s": ("mbps", ".1f"),
        },
    )


def _together(rows: np.ndarray, back: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair tests of one direction with tests of the other that were near in time."""
    at_s, back_s = rows["measured_at_s"], back["measured_at_s"]
    if len(back) == 1:
        nearest = np.zeros(len(rows), dtype=int)
    else:
        nearest = np.searchsorted(back_s, at_s).clip(1, len(back) - 1)
        earlier = at_s - back_s[nearest - 1] < back_s[nearest] - at_s
        nearest = nearest - earlier
    close = np.abs(back_s[nearest] - at_s) <= TOGETHER_S
    return rows[close], back[nearest[close]]


@analysis(
    "addresses",
    "Do private addresses do better than public ones?",
    "Medians of each link over both kinds, compared link by link with signs drawn at random "
    "(Computer Networks 2016). `relayd probe --addresses` chooses the kind.",
)
def addresses(section: Section, data: ReportData) -> None:
    """Answer whether private addresses carry more, or are nearer, than public ones."""
    metrics: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
    for metric in metrics:
        links = list(data.address_kinds(metric))
        section.samples += sum(len(private) + len(public) for _, _, private, public in links)
        if not links:
            section.say(f"{metric}: no link was tested over both kinds of address.")
            continue
        private = np.array([np.median(values) for _, _, values, _ in links])
        public = np.array([np.median(values) for _, _, _, values in links])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = private / public
            order = np.argsort(-np.nan_to_num(np.abs(np.log(ratios)), posinf=0.0))[:MOST_LISTED]
        section.table(
            f"{metric} over private and public addresses, where they differ most",
            (
                {"src": links[i][0], "dst": links[i][1], "ratio": ratios[i]}
                | {"private": private[i], "public": public[i]}
                for i in order.tolist()
            ),
            {
                "from": ("src", ""),
                "to": ("dst", ""),
                "private": ("private", ".4g"),
                "public": ("public", ".4g"),
                "ratio": ("ratio", ".2f"),
            },
        )
        try:
            found = paired_difference(private, public)
        except TooFewError:
            section.say(
                f"{metric}: {len(links)} links were tested over both kinds; at least "
                f"{FEWEST_PAIRS} are needed to tell a difference from chance."
            )
            continue
        section.figures[metric] = {
            "legs": len(links),
            "private_over_public": found.ratio,
            "p_value": found.p_value,
            "differs": found.differs,
        }
        words = "more than chance gives" if found.differs else "no more than chance gives"
        section.say(
            f"{metric}: private over public is {found.ratio:.2f} (geometric mean of {len(links)} "
            f"links), {words} (p = {found.p_value:.3f})."
        )
    section.concluded = bool(section.figures)


@analysis(
    "latency",
    "Does distance explain latency?",
    "RTT against the great circle: the bound 2 d / c, the remainder in bands of 50 ms, and "
    "detours: RTTs near the sum of two links that lead out of the way (Computer Networks "
    "2016).",
)
def latency(section: Section, data: ReportData) -> None:
    """Answer how far distance explains round-trip times."""
    section.samples = data.count("rtt_ms")
    medians = data.medians("rtt_ms")
    regions = {name: data.catalogue.region(name) for pair in medians for name in pair}
    found = [
        p
        for (src, dst), rtt_ms in medians.items()
        if (p := propagation(regions[src], regions[dst], rtt_ms)) is not None
    ]
    if not found:
        section.say("No round-trip time of regions with known places.")
        return
    _say_bands(section, found)
    out_of_the_way = section.conclude("detours", lambda: detours(regions, medians))
    if out_of_the_way is not None:
        section.say(f"{len(out_of_the_way)} pairs look like detours.")
        section.table(
            "Detours, the slowest first",
            (dumped(detour, as_json=True) for detour in out_of_the_way[:MOST_LISTED]),
            {
                "from": ("src", ""),
                "to": ("dst", ""),
                "as if through": ("through", ""),
                "RTT ms": ("rtt_ms", ".0f"),
                "sum of links ms": ("sum_ms", ".0f"),
            },
        )
    farthest = max(p.distance_km for p in found)
    section.charts.append(
        points(
            f"Round-trip time against great-circle distance, {len(found)} pairs.",
            "distance, km",
            "RTT, ms",
            [(p.distance_km, p.rtt_ms, provider_pair(p.src, p.dst)) for p in found],
            line=[(0, 0), (farthest, farthest * 2 * GLASS / 299.792458)],
            line_name="light in straight fibre",
        )
    )
    _say_zones(section, data)


def _say_bands(section: Section, found: list[Propagation]) -> None:
    bands = sorted(Counter(p.band_ms for p in found).items())
    names = {f"{band:.0f}-{band + BAND_MS:.0f} ms": count for band, count in bands}
    stretch = np.array([p.stretch for p in found if np.isfinite(p.stretch)])
    median = float(np.median(stretch)) if stretch.size else None
    section.figures |= {"bands": names, "median_stretch": median}
    stretched = "" if median is None else f"RTT is {median:.2f}x that of light in straight fibre "
    section.say(
        f"Of {len(found)} pairs, {stretched}"
        "(median); beyond the bound of light in a vacuum remain "
        + ", ".join(f"{name} for {count}" for name, count in names.items())
        + " pairs."
    )
    if impossible := [p for p in found if not p.possible]:
        section.say(
            f"{len(impossible)} pairs are faster than light: a wrong place in the catalogue or a "
            f"wrong measurement, such as {impossible[0].src} > {impossible[0].dst}."
        )


def _say_zones(section: Section, data: ReportData) -> None:
    alike = compared = 0
    for by_zone in data.series_by_zone("rtt_ms", TOGETHER_S):
        # Half-hourly campaigns measure zones one after the other.
        times = sorted({time for values in by_zone.values() for time in values})
        series = {z: [values.get(time, np.nan) for time in times] for z, values in by_zone.items()}
        found: Any = section.conclude("zones", lambda s=series: zone_pairs(s))  # type: ignore[misc]
        compared += len(found or ())
        alike += sum(pair.alike for pair in found or ())
    if compared:
        section.figures["zones"] = {"pairs_of_zones": compared, "alike": alike}
        section.say(
            f"Zones: {alike} of {compared} pairs of zones see the same RTT (CV-RMSE under 0.2)."
        )


@analysis(
    "packets",
    "Are packets lost or late?",
    "Loss and jitter of pings by pair of providers, and loss as what happens in some samples: "
    "how many, and whether they come together; first packets of runs against the others "
    "(Predictability of cloud networks, 2021).",
)
def packets(section: Section, data: ReportData) -> None:
    """Answer where packets are lost or late."""
    metrics: tuple[tuple[Metric, str], ...] = (("loss_pct", "loss, %"), ("jitter_ms", "jitter, ms"))
    for metric, name in metrics:
        medians = data.medians(metric)
        section.samples += data.count(metric)
        if not medians:
            section.say(f"There is no sample of {name.partition(',')[0]}.")
            continue
        groups: dict[str, list[float]] = defaultdict(list)
        for (src, dst), value in medians.items():
            groups[provider_pair(src, dst)].append(value)
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
            {
                "providers": ("providers", ""),
                "pairs": ("pairs", ""),
                "mean": ("mean", ".3g"),
                "most": ("most", ".3g"),
            },
        )
        if metric == "loss_pct":
            _say_occurrences(section, data)
    _say_first_packets(section, data)


def _say_occurrences(section: Section, data: ReportData) -> None:
    """Say in how many samples packets were lost: medians of pairs do not see rare loss."""
    records = [
        {"src": src, "dst": dst, **dumped(occurrences(rows["value"]), as_json=True)}
        for src, dst, rows in data.pairs("loss_pct")
    ]
    samples = sum(record["samples"] for record in records)
    lossy = sum(record["occurrences"] for record in records)
    lossy_pairs = [record for record in records if record["occurrences"]]
    clean = len(records) - len(lossy_pairs)
    clustered = sum(record["clustered"] for record in lossy_pairs)
    section.figures["loss_occurrences"] = {
        "samples": samples,
        "lossy": lossy,
        "pairs": len(records),
        "pairs_without_loss": clean,
        "pairs_with_clusters": clustered,
    }
    section.say(
        f"{clean} of {len(records)} pairs lost nothing in any sample; {lossy:,} of {samples:,} "
        f"samples lost packets ({lossy / samples:.2%}). On {clustered} of {len(lossy_pairs)} pairs "
        "with loss it comes together in time more than by chance."
    )
    section.table(
        "Samples with loss, the most frequent first",
        sorted(lossy_pairs, key=lambda record: -record["share"])[:MOST_LISTED],
        {
            "from": ("src", ""),
            "to": ("dst", ""),
            "samples": ("samples", ",d"),
            "with loss": ("occurrences", ",d"),
            "share": ("share", ".2%"),
            "lost then, %": ("median_of_occurrences", ".3g"),
            "worst, %": ("worst", ".3g"),
        },
    )


def _say_first_packets(section: Section, data: ReportData) -> None:
    """Say where the first packet of a run takes longer than the others."""
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for test in data.detailed_tests("rtt_ms"):
        first_ms = test.read_detail().get("first_ms")
        if isinstance(first_ms, int | float):
            runs[test.src, test.dst].append((float(first_ms), test.value))
    found = []
    for (src, dst), of_link in runs.items():
        with suppress(TooFewError):
            found.append((src, dst, first_packets(*np.array(of_link).T)))
    if not found:
        section.say("First packets: no conclusion, no pair has six runs that keep them.")
        return
    # Of many pairs tested, 5 % would pass by chance: those that count are so many.
    slow = sorted((item for item in found if item[2].first_differs), key=lambda i: i[2].p_value)
    slow = slow[: discoveries([of.p_value for _, _, of in found])]
    section.figures["first_packets"] = {
        "pairs": len(found),
        "slow": [
            {"src": a, "dst": b, "over_others": of.first_over_others, "extra_ms": of.extra_ms}
            for a, b, of in slow[:MOST_LISTED]
        ],
        "with_slow_first": len(slow),
    }
    extra = ""
    if slow:
        extra = f", by {np.median([of.extra_ms for _, _, of in slow]):.3g} ms (median)"
    section.say(
        f"The first packet of a run takes longer than the others on {len(slow)} of {len(found)} "
        f"pairs{extra}."
    )

"""Round-trip times against distance, detours, and differences between zones."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from probes.analysis.geodesic import GLASS, Propagation, detours, propagation
from probes.analysis.zones import ZonePair, zone_pairs
from relayd.report.charts import points
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, Table

MOST_LISTED = 10


def latency(data: ReportData) -> Section:
    """Answer how far distance explains round-trip times."""
    section = Section(
        "latency",
        "Does distance explain latency?",
        "RTT against the great circle: the bound 2 d / c, the remainder in bands of 50 ms, and "
        "detours: RTTs near the sum of two links that lead out of the way (Computer Networks "
        "2016).",
    )
    section.samples = len(data.columns("rtt_ms"))
    medians = data.medians("rtt_ms")
    regions = {name: data.catalogue.region(name) for pair in medians for name in pair}
    found = [
        p
        for (src, dst), rtt_ms in medians.items()
        if (p := propagation(regions[src], regions[dst], rtt_ms)) is not None
    ]
    if not found:
        section.concluded = False
        section.statements.append("No round-trip time of regions with known places.")
        return section
    _say_bands(section, found)
    out_of_the_way = section.say("detours", lambda: detours(regions, medians))
    if out_of_the_way:
        section.tables.append(
            Table(
                "Detours, the slowest first",
                ("from", "to", "as if through", "RTT ms", "sum of links ms"),
                tuple(
                    (d.src, d.dst, d.through, f"{d.rtt_ms:.0f}", f"{d.sum_ms:.0f}")
                    for d in out_of_the_way[:MOST_LISTED]
                ),
            )
        )
    if out_of_the_way is not None:
        section.statements.append(f"{len(out_of_the_way)} pairs look like detours.")
    farthest = max(p.distance_km for p in found)
    rows = [(p.distance_km, p.rtt_ms, provider_pair(p.src, p.dst)) for p in found]
    section.charts.append(
        points(
            f"Round-trip time against great-circle distance, {len(found)} pairs.",
            "distance, km",
            "RTT, ms",
            rows,
            line=[(0, 0), (farthest, farthest * 2 * GLASS / 299.792458)],
            line_name="light in straight fibre",
        )
    )
    _say_zones(section, data)
    return section


def _say_bands(section: Section, found: list[Propagation]) -> None:
    bands = Counter(p.band_ms for p in found)
    stretch = np.array([p.stretch for p in found if np.isfinite(p.stretch)])
    impossible = [p for p in found if not p.possible]
    section.figures["bands"] = {
        f"{int(band)}-{int(band) + 50} ms": bands[band] for band in sorted(bands)
    }
    section.figures["median_stretch"] = float(np.median(stretch)) if stretch.size else None
    section.statements.append(
        f"Of {len(found)} pairs, RTT is {np.median(stretch):.2f}x that of light in straight fibre "
        "(median); beyond the bound of light in a vacuum remain "
        + ", ".join(f"{int(b)}-{int(b) + 50} ms for {bands[b]}" for b in sorted(bands))
        + " pairs."
    )
    if impossible:
        section.statements.append(
            f"{len(impossible)} pairs are faster than light: a wrong place in the catalogue or a "
            f"wrong measurement, such as {impossible[0].src} > {impossible[0].dst}."
        )


def _say_zones(section: Section, data: ReportData) -> None:
    columns = data.columns("rtt_ms")
    used = {columns.setups[int(number)] for number in np.unique(columns.rows["setup"])}
    if len({(setup.src_zone, setup.dst_zone) for setup in used}) < 2:
        return
    compared: list[ZonePair] = []
    for _, _, rows in columns.by_pair():
        by_zone: dict[str, dict[float, float]] = defaultdict(dict)
        for row in rows:
            setup = columns.setups[int(row["setup"])]
            # Half-hourly campaigns measure zones one after the other.
            by_zone[f"{setup.src_zone} > {setup.dst_zone}"][float(row["at_s"]) // 1800] = float(
                row["value"]
            )
        if len(by_zone) < 2:
            continue
        times = sorted(set().union(*by_zone.values()))
        series = {
            zone: [values.get(time, np.nan) for time in times] for zone, values in by_zone.items()
        }
        compared += section.say("zones", lambda s=series: zone_pairs(s)) or []  # type: ignore[misc]
    if compared:
        alike = sum(pair.alike for pair in compared)
        section.figures["zones"] = {"pairs_of_zones": len(compared), "alike": alike}
        section.statements.append(
            f"Zones: {alike} of {len(compared)} pairs of zones see the same RTT (CV-RMSE under "
            "0.2)."
        )

"""What transfers keep at relays with disk: from when until when, and for how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import Period, StoredVolume
from planner.schedule.tariffs import MONTH_S

# Of a transfer's volume: less is the rounding of a sum.
NOTHING_STORED = 1e-6


def stored_volumes(
    periods: Sequence[Period],
    ends: tuple[str, str],
    lies_gb: Mapping[str, float],
    now_s: float,
    usd_per_gb_month: Mapping[str, float],
) -> tuple[StoredVolume, ...]:
    """Return what of a transfer lies at relays from a time on.

    Parameters
    ----------
    periods : sequence of Period
        From then on, in order. Rates are constant within each: what lies at a relay changes evenly.
    ends : tuple of str
        Source and destination.
    lies_gb : mapping
        What lies there already, by region.
    now_s : float
    usd_per_gb_month : mapping
        By region.
    """
    src, dst = ends
    changes: dict[str, list[tuple[float, float, float]]] = {region: [] for region in lies_gb}
    volume_gb = sum(lies_gb.values())
    for period in periods:
        for region, gbit in period.moved_gbit(src, dst).items():
            gb = gbit / BITS_PER_BYTE
            volume_gb += max(0.0, gb)
            if region != dst and gb:
                changes.setdefault(region, []).append((period.start_s, period.end_s, gb))
    found = []
    for region, of in changes.items():
        gb, price = lies_gb.get(region, 0.0), usd_per_gb_month[region]
        since_s, at_s, most_gb, gb_s = now_s, now_s, gb, 0.0
        for start_s, end_s, change_gb in of:
            if gb <= NOTHING_STORED * volume_gb:
                since_s, most_gb, gb_s, gb = start_s, 0.0, 0.0, 0.0
            else:
                gb_s += gb * (start_s - at_s)
            gb_s += (gb + change_gb / 2) * (end_s - start_s)
            gb, at_s = gb + change_gb, end_s
            most_gb = max(most_gb, gb)
            if gb <= NOTHING_STORED * volume_gb:
                found.append(StoredVolume(region, since_s, at_s, most_gb, gb_s * price / MONTH_S))
    return tuple(sorted(found, key=lambda stored: (stored.start_s, stored.region)))

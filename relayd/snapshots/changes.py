"""Changes since an earlier snapshot: estimates that are outside the bounds that they had then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite, log

from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES, SITE_FIGURES, Link, Site
from planner.model.network import Network


@dataclass(frozen=True, slots=True)
class EstimateChange:
    """An estimate that is now outside the bounds that it had.

    Attributes
    ----------
    src : str
        Source of a link, or the region whose VMs' cap it is.
    dst : str | None
        Destination of a link; None for a cap.
    metric : str
        Name of the figure, which ends in its unit.
    before, after : Estimate
        The bounds of the former are widened for its age now.
    ratio : float | None
        Expected now over expected then; None where that was zero.
    """

    src: str
    dst: str | None
    metric: str
    before: Estimate
    after: Estimate
    ratio: float | None


def changes(
    links: Iterable[Link], sites: Iterable[Site], now: Network, now_s: float
) -> list[EstimateChange]:
    """Return the estimates that have changed, those by the largest ratio first.

    What moved most is what changes verdicts. Regions that are new or gone have no change.

    Parameters
    ----------
    links, sites
        Of the earlier snapshot, as they were saved.
    now : Network
        Bounds not widened for age.
    now_s : float
        Unix time, for the age of what was believed.
    """
    found = [*_of_sites(sites, now, now_s), *_of_links(links, now, now_s)]
    return sorted(
        found, key=lambda change: (-_size(change), change.src, change.dst or "", change.metric)
    )


def regions_between(
    sites: Iterable[Site], now: Mapping[str, object]
) -> tuple[list[str], list[str]]:
    """Return the regions that were added and those that were removed."""
    then = {site.region for site in sites}
    return sorted(set(now) - then), sorted(then - set(now))


def _of_links(links: Iterable[Link], now: Network, now_s: float) -> Iterator[EstimateChange]:
    for old in links:
        new = now.usual.get(old.src, {}).get(old.dst)
        if new is not None:
            yield from _moved(old, new, old.src, old.dst, LINK_FIGURES, now_s)


def _of_sites(sites: Iterable[Site], now: Network, now_s: float) -> Iterator[EstimateChange]:
    for old in sites:
        new = now.sites.get(old.region)
        if new is not None:
            yield from _moved(old, new, old.region, None, SITE_FIGURES, now_s)


def _moved(
    old: object, new: object, src: str, dst: str | None, figures: tuple[str, ...], now_s: float
) -> Iterator[EstimateChange]:
    for metric in figures:
        was, after = getattr(old, metric), getattr(new, metric)
        # Nearly all estimates are unchanged: recognise these quickly.
        if was.expected == after.expected or not isfinite(was.expected + after.expected):
            continue
        before = was.aged(now_s)
        if not before.low <= after.expected <= before.high:
            ratio = after.expected / before.expected if before.expected else None
            yield EstimateChange(src, dst, metric, before, after, ratio)


def _size(change: EstimateChange) -> float:
    return abs(log(change.ratio)) if change.ratio else inf

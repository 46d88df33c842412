"""Figures that are others now: since an earlier snapshot, and by a decision about samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, isfinite, log
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Estimate
from planner.model.link import LINK_FIGURES, SITE_FIGURES, Link
from planner.model.network import Network
from probes.samples import Sample
from relayd.snapshots.building import estimated
from relayd.store import Store
from relayd.store.samples.reading import Decision

MOVED = 0.001
"""Relative; less is not worth a line."""


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


class Effect(NamedTuple):
    """A figure that becomes another, in the unit its name ends in; None where there is none.

    Attributes
    ----------
    dst : str
        ``""`` for figures of a VM.
    address : AddressKind | None
        Of links: over which kind.
    """

    src: str
    dst: str
    figure: str
    before: float | None
    after: float | None
    address: AddressKind | None = None


def changes(then: Network, now: Network, now_s: float) -> list[EstimateChange]:
    """Return the estimates that have changed, those by the largest ratio first.

    What moved most is what changes verdicts. Regions that are new or gone have no change.

    Parameters
    ----------
    then : Network
        Of the earlier snapshot, as it was saved.
    now : Network
        Bounds not widened for age.
    now_s : float
        Unix time, for the age of what was believed.
    """
    found: list[EstimateChange] = []
    for site in then.sites.values():
        cap = now.sites.get(site.region)
        found += _moved(site, cap, site.region, None, SITE_FIGURES, now_s)
    for old in then.usual.all_links():
        new = now.usual.get(old.src, {}).get(old.dst)
        found += _moved(old, new, old.src, old.dst, LINK_FIGURES, now_s)
    return sorted(found, key=lambda one: (-_size(one.ratio), one.src, one.dst or "", one.metric))


def effects_of(
    store: Store,
    catalogue: Catalogue,
    *,
    change: tuple[Decision, Collection[int]] | None = None,
    accepted: Sequence[Sample] = (),
) -> list[Effect]:
    """Return the figures that a decision about samples would change; see :func:`.estimated`."""
    through = store.samples.last_id()
    before = estimated(store, catalogue, through=through).network
    after = estimated(store, catalogue, through=through, change=change, accepted=accepted).network
    return effects(before, after)


def effects(before: Network, after: Network) -> list[Effect]:
    """Return the expected figures that differ: what appears or vanishes, then the largest ratio."""
    found: list[Effect] = []
    old, new = _links(before), _links(after)
    for src, dst, address in old.keys() | new.keys():
        was, now = old.get((src, dst, address)), new.get((src, dst, address))
        found += [
            Effect(src, dst, figure, _known(was, figure), _known(now, figure), address)
            for figure in LINK_FIGURES
        ]
    for name in before.sites.keys() | after.sites.keys():
        caps = before.sites.get(name), after.sites.get(name)
        found += [
            Effect(name, "", figure, _known(caps[0], figure), _known(caps[1], figure))
            for figure in SITE_FIGURES
        ]
    moved = filter(_is_moved, found)
    return sorted(moved, key=lambda one: (-_size(_ratio(one)), one[:3], one.address or ""))


def _moved(
    old: object, new: object, src: str, dst: str | None, figures: tuple[str, ...], now_s: float
) -> Iterator[EstimateChange]:
    for metric in figures if new is not None else ():
        was, after = getattr(old, metric), getattr(new, metric)
        # Nearly all estimates are unchanged: recognise these quickly.
        if was.expected == after.expected or not isfinite(was.expected + after.expected):
            continue
        before = was.aged(now_s)
        if not before.low <= after.expected <= before.high:
            ratio = after.expected / before.expected if before.expected else None
            yield EstimateChange(src, dst, metric, before, after, ratio)


def _links(network: Network) -> dict[tuple[str, str, AddressKind], Link]:
    """Return the links of usual times, over addresses in use or not."""
    links = chain(network.usual.all_links(), network.others.all_links())
    return {(link.src, link.dst, link.address): link for link in links}


def _known(owner: object | None, figure: str) -> float | None:
    expected: float = inf if owner is None else getattr(owner, figure).expected
    return expected if isfinite(expected) else None


def _is_moved(one: Effect) -> bool:
    if one.before is None or one.after is None:
        return one.before is not one.after
    return abs(one.after - one.before) > MOVED * one.before


def _ratio(one: Effect) -> float | None:
    return one.after / one.before if one.before and one.after else None


def _size(ratio: float | None) -> float:
    return abs(log(ratio)) if ratio else inf

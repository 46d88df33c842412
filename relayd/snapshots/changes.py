"""Figures that are others now: since an earlier snapshot, and by a decision about samples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf, isfinite, log
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Estimate
from planner.model.network import Network
from probes.samples import Sample
from relayd.snapshots.building import estimated
from relayd.store import Store
from relayd.store.samples.reading import Decision

MOVED = 0.001  # relative; less is not worth a line


@dataclass(frozen=True, slots=True)
class EstimateChange:
    """An estimate that is now outside the bounds that it had."""

    src: str  # source of a link, or the region whose VMs' cap it is
    dst: str | None  # destination of a link; None for a cap
    metric: str  # name of the figure, which ends in its unit
    before: Estimate  # with bounds widened for its age now
    after: Estimate
    ratio: float | None  # expected now over expected then; None where that was zero


class Effect(NamedTuple):
    """A figure that becomes another, in the unit its name ends in; None where there is none."""

    src: str
    dst: str  # ``""`` for figures of a VM
    figure: str
    before: float | None
    after: float | None
    address: AddressKind | None = None  # of links: over which kind


def changes(then: Network, now: Network, now_s: float) -> list[EstimateChange]:
    """Return the estimates that have changed, those by the largest ratio first.

    What moved most is what changes verdicts. Regions that are new or gone have no change. ``then``
    is as it was saved, ``now`` not widened for age; the Unix time is for the age of the former.
    """
    found: list[EstimateChange] = []
    new = _estimates(now, usual_alone=True)
    for key, was in _estimates(then, usual_alone=True).items():
        after = new.get(key)
        # Nearly all estimates are unchanged: recognise these quickly.
        if after is None or was.expected == after.expected:
            continue
        before, (src, dst, metric, _) = was.aged(now_s), key
        is_known = isfinite(was.expected + after.expected)
        if is_known and not before.low <= after.expected <= before.high:
            ratio = after.expected / before.expected if before.expected else None
            found.append(EstimateChange(src, dst or None, metric, before, after, ratio))
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
    old, new = (
        {key: one.expected for key, one in _estimates(network).items() if isfinite(one.expected)}
        for network in (before, after)
    )
    moved = []
    for key in old.keys() | new.keys():
        was, now = old.get(key), new.get(key)
        if was is None or now is None or abs(now - was) > MOVED * was:
            moved.append(Effect(*key[:3], was, now, key[3]))
    return sorted(moved, key=lambda one: (-_size(_ratio(one)), one[:3], one.address or ""))


def _estimates(
    network: Network, *, usual_alone: bool = False
) -> dict[tuple[str, str, str, AddressKind | None], Estimate]:
    """Return estimates by source, destination (``""`` for a VM's cap), figure and address.

    Links are those over addresses in use or not, or those in use whatever their addresses are.
    """
    links = [*network.usual.all_links(), *(() if usual_alone else network.others.all_links())]
    caps: dict[tuple[str, str, str, AddressKind | None], Estimate] = {
        (site.region, "", figure, None): estimate
        for site in network.sites.values()
        for figure, estimate in site.estimates.items()
    }
    return caps | {
        (link.src, link.dst, figure, None if usual_alone else link.address): estimate
        for link in links
        for figure, estimate in link.estimates.items()
    }


def _ratio(one: Effect) -> float | None:
    return one.after / one.before if one.before and one.after else None


def _size(ratio: float | None) -> float:
    return abs(log(ratio)) if ratio else inf

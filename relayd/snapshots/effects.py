"""What a decision about samples does to estimates: figures that become others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from math import inf, isfinite, log
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind
from planner.model.link import LINK_FIGURES, SITE_FIGURES, Link
from planner.model.network import Network
from probes.samples import Sample
from relayd.snapshots.building import estimated
from relayd.store import Store
from relayd.store.samples.decisions import Decision

MOVED = 0.001
"""Relative; less is not worth a line."""


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


def effects_of(
    store: Store,
    catalogue: Catalogue,
    *,
    change: tuple[Decision, Collection[int]] | None = None,
    accepted: Sequence[Sample] = (),
) -> list[Effect]:
    """Return what a decision would do to the estimates of all samples; see :func:`.estimated`."""
    through = store.samples.last_id()
    before = estimated(store, catalogue, through=through).network
    after = estimated(store, catalogue, through=through, change=change, accepted=accepted).network
    return effects(before, after)


def effects(before: Network, after: Network) -> list[Effect]:
    """Return the expected figures that differ: what appears or vanishes, then the largest ratio."""
    return sorted(_found(before, after), key=lambda one: (-_size(one), one[:3], one.address or ""))


def _found(before: Network, after: Network) -> Iterator[Effect]:
    old, new = _links(before), _links(after)
    for src, dst, address in old.keys() | new.keys():
        key = (src, dst, address)
        for figure, was, now in _moved(old.get(key), new.get(key), LINK_FIGURES):
            yield Effect(src, dst, figure, was, now, address)
    for name in before.sites.keys() | after.sites.keys():
        sites = before.sites.get(name), after.sites.get(name)
        for figure, was, now in _moved(*sites, SITE_FIGURES):
            yield Effect(name, "", figure, was, now)


def _links(network: Network) -> dict[tuple[str, str, AddressKind], Link]:
    """Return the links of usual times, over addresses in use or not."""
    links = chain(network.usual.all_links(), network.others.all_links())
    return {(link.src, link.dst, link.address): link for link in links}


def _moved(
    old: object | None, new: object | None, figures: tuple[str, ...]
) -> Iterator[tuple[str, float | None, float | None]]:
    for figure in figures:
        was, now = _known(old, figure), _known(new, figure)
        one_sided = (was is None) is not (now is None)
        if one_sided or (was is not None and now is not None and abs(now - was) > MOVED * was):
            yield figure, was, now


def _known(owner: object | None, figure: str) -> float | None:
    expected: float = inf if owner is None else getattr(owner, figure).expected
    return expected if isfinite(expected) else None


def _size(effect: Effect) -> float:
    return abs(log(effect.after / effect.before)) if effect.before and effect.after else inf

"""What a decision about samples does to estimates: figures that become others."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import inf, isfinite, log
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.link import LINK_FIGURES, SITE_FIGURES
from planner.model.network import Network
from probes.samples import Sample
from relayd.snapshots.building import estimated
from relayd.store import Store
from relayd.store.samples.decisions import Decision

MOVED = 0.001
"""Relative; less is not worth a line."""


class Effect(NamedTuple):
    """A figure that becomes another; ``dst`` is ``""`` for those of a VM."""

    src: str
    dst: str
    figure: str
    before: float
    after: float


def effects_of(
    store: Store,
    catalogue: Catalogue,
    *,
    change: tuple[Decision, Collection[int]] | None = None,
    accepted: Sequence[Sample] = (),
) -> list[Effect]:
    """Return what a decision would do to the estimates of all samples; see :func:`estimated`."""
    through = store.samples.last_id()
    before = estimated(store, catalogue, through=through).network
    after = estimated(store, catalogue, through=through, change=change, accepted=accepted).network
    return effects(before, after)


def effects(before: Network, after: Network) -> list[Effect]:
    """Return the expected figures that differ, those by the largest ratio first."""
    return sorted(_found(before, after), key=lambda one: (-_size(one), one[:3]))


def _found(before: Network, after: Network) -> Iterator[Effect]:
    for old in before:
        if (new := after.usual.get(old.src, {}).get(old.dst)) is not None:
            yield from _moved(old.src, old.dst, old, new, LINK_FIGURES)
    for name, site in before.sites.items():
        if name in after.sites:
            yield from _moved(name, "", site, after.sites[name], SITE_FIGURES)


def _moved(
    src: str, dst: str, old: object, new: object, figures: tuple[str, ...]
) -> Iterator[Effect]:
    for figure in figures:
        was, now = getattr(old, figure).expected, getattr(new, figure).expected
        if isfinite(was + now) and abs(now - was) > MOVED * was:
            yield Effect(src, dst, figure, was, now)


def _size(effect: Effect) -> float:
    return abs(log(effect.after / effect.before)) if effect.before and effect.after else inf

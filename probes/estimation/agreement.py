"""Agreement of sources that report the same link: one source alone can't move its level.

A figure rests on the *reference*: the own prober, where it has measured the link within the memory
of estimates; else the source that has reported the link longest. Samples of others are compared
with it:

- Samples that agree count only where the reference has fewer than :data:`ENOUGH` samples, and of
  each source at most as many as the reference has: a hundred samples of one source are no hundred
  votes.
- Samples that contradict are *disputed*: they are kept, counted and named, and change nothing,
  whatever their number and their time stamps.
- A new level counts once a second source claims the same, or several campaigns of the own prober
  find it. It does not against the own prober's newer measurements, nor against as many other
  sources that have measured since and still see the old level.

A link that only one source has reported is estimated from all that it sent, and named. What is
far off what models say of such a link (:meth:`.LinkSamples._limits`) waits for a second source.

Why it is so: docs/decisions/05-what-counts-as-poison.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from planner.model.estimate import Figures
from probes.estimation.groups import MAD_TO_SIGMA, Floats
from probes.samples import OWN, Rows

ENOUGH = 3
"""Samples whose median one odd test does not move."""
CAMPAIGN_S = 600.0
"""Samples that are less apart are of one campaign, or of one dip."""
CLAIM = 3
"""Newest samples of a source that agree with each other: two sources' are six in a row, as many as
a change of level takes (:mod:`probes.analysis.level_shift`)."""
LEAST_TOLERANCE = 0.1
"""Of a logarithm: a smaller change alters no decision."""
NOISES = 2.0
DEVIATIONS = 3.0


class DisputedSamples(NamedTuple):
    """Samples of one source that contradict a link's level, out of `of` that may have counted."""

    source: str
    rows: Rows
    of: int


class Agreement(NamedTuple):
    """The samples of a link and metric that count, oldest first.

    `reported_by` names their sources, where the own prober is not among them; with `is_shift` they
    are a new level that the reference has not found yet.
    """

    rows: Rows
    reported_by: tuple[str, ...] = ()
    disputed: tuple[DisputedSamples, ...] = ()
    is_shift: bool = False


def agreed(found: Mapping[str, Rows], noise: float) -> Agreement:
    """Return the samples of a link and metric that count.

    Of each source there is at least one sample that may count, the oldest first, with the fields
    of :data:`.CANDIDATE`. Of tests, 90 % lie within `noise` of the level, as a logarithm.
    """
    name = reference_of(found)
    reference = found[name]
    if len(found) == 1:
        return Agreement(reference, trusted(name))
    others = {source: rows for source, rows in found.items() if source != name}
    level = float(np.median(reference["log"]))
    deviation = MAD_TO_SIGMA * float(np.median(np.abs(reference["log"] - level)))
    tolerance = max(LEAST_TOLERANCE, NOISES * noise, DEVIATIONS * deviation)
    needed = min(CLAIM, len(reference))
    claimed = (claimed_level(*one, level, tolerance, needed) for one in others.items())
    shift = _confirmed([claim for claim in claimed if claim], found, tolerance)
    if shift is not None:
        return _after_shift(shift, found, tolerance)
    counting, disputed = {name: reference}, []
    for source, rows in others.items():
        near = np.abs(rows["log"] - level) <= tolerance
        if not near.all():
            disputed.append(DisputedSamples(source, rows[~near], len(near)))
        if len(reference) < ENOUGH and near.any():
            counting[source] = rows[near][-len(reference) :]
    return Agreement(_by_time(counting.values()), trusted(*counting), tuple(disputed))


def reference_of(found: Mapping[str, Rows]) -> str:
    """Return the source to go by: the own prober, else the one that has reported longest."""
    return min(found, key=lambda name: (name != OWN, found[name]["first_id"][0], name))


def _by_time(parts: Iterable[Rows]) -> Rows:
    first, *others = parts
    rows = np.concatenate([first, *others]) if others else first
    return rows[np.argsort(rows["measured_at_s"], kind="stable")]


class _NewLevel(NamedTuple):
    """A level that newest samples claim, its begin, and its sources."""

    level: float
    since_s: float
    sources: frozenset[str]


def claimed_level(
    source: str, rows: Rows, level: float, tolerance: float, needed: int
) -> _NewLevel | None:
    """Return another level that a source's newest samples claim, all of one run; else None."""
    logs = rows["log"]
    middle = float(np.median(logs[-needed:]))
    if len(logs) < needed or abs(middle - level) <= tolerance:
        return None
    belongs = (np.abs(logs - level) > tolerance) & (np.abs(logs - middle) <= tolerance)
    begin = int(np.flatnonzero(~belongs).max(initial=-1)) + 1
    if begin > len(belongs) - needed:
        return None
    since_s = float(rows["measured_at_s"][begin])
    return _NewLevel(float(np.median(logs[begin:])), since_s, frozenset({source}))


def _confirmed(
    claims: Sequence[_NewLevel], found: Mapping[str, Rows], tolerance: float
) -> _NewLevel | None:
    """Return the new level that more than one source has found, if there is one."""
    confirmed = []
    for claim in claims:
        allies = [ally for ally in claims if abs(ally.level - claim.level) <= tolerance]
        # From when a second one had seen it: earlier samples of the old level may be right.
        since = sorted(ally.since_s for ally in allies)[:2]
        behind, against = {source for ally in allies for source in ally.sources}, set()
        for source, rows in found.items():
            seen = rows[rows["measured_at_s"] >= since[-1]]
            near = np.abs(seen["log"] - claim.level) <= tolerance
            if source in behind or not len(near):
                continue
            if 2 * np.count_nonzero(near) <= len(near):
                against.add(source)
            elif source != OWN or _confirms(seen["measured_at_s"][near]):
                behind.add(source)
        refuted = OWN in against or (OWN not in behind and len(against) >= len(behind))
        if len(behind) > 1 and not refuted:
            confirmed.append(_NewLevel(claim.level, since[0], frozenset(behind)))
    return max(confirmed, key=lambda one: (OWN in one.sources, len(one.sources)), default=None)


def _confirms(at_s: Floats) -> bool:
    """Return whether samples of the own prober confirm a level: several, of campaigns apart."""
    return 1 + int(np.count_nonzero(np.diff(at_s) > CAMPAIGN_S)) >= ENOUGH


def _after_shift(shift: _NewLevel, found: Mapping[str, Rows], tolerance: float) -> Agreement:
    """Return the samples of a new level; earlier ones are of the old one."""
    near: dict[str, Rows] = {}
    disputed = []
    for source, rows in found.items():
        since = rows[rows["measured_at_s"] >= shift.since_s]
        fits = np.abs(since["log"] - shift.level) <= tolerance
        near[source] = since[fits]
        if source != OWN and not fits.all():
            disputed.append(DisputedSamples(source, since[~fits], len(rows)))
    own = OWN in near and _confirms(near[OWN]["measured_at_s"])
    names = () if own else tuple(sorted(shift.sources))
    counting = _by_time(near[source] for source in ({OWN} if own else shift.sources))
    return Agreement(counting, names, tuple(disputed), is_shift=not own)


def mark_of(found: Agreement) -> Figures | None:
    """Return the sources of the samples that count and of those that contradict, if need be."""
    if not (found.reported_by or found.disputed):
        return None
    return Figures(
        reported_by=found.reported_by or None,
        unconfirmed=found.is_shift or None,
        disputed=sum(len(one.rows) for one in found.disputed) or None,
        disputed_by=tuple(sorted(one.source for one in found.disputed)) or None,
    )


def figures_with(figures: Figures | None, mark: Figures | None) -> Figures | None:
    """Return the figures of an estimate with the sources that it rests on."""
    if figures is None or mark is None:
        return figures or mark
    told = {name: value for name, value in mark._asdict().items() if value is not None}
    return figures._replace(**told)


def still_told(figures: Figures | None, **more: Any) -> Figures | None:
    """Return other figures that rest on what the same sources reported."""
    by = figures.reported_by if figures else None
    return Figures(reported_by=by, **more) if by or more else None


def is_own(mark: Figures | None) -> bool:
    """Tell whether samples of the own prober are behind an estimate, or there is one source."""
    return mark is None or not mark.reported_by


def trusted(*sources: str) -> tuple[str, ...]:
    """Return the sources to be named: none where the own prober is among them."""
    return () if OWN in sources else tuple(sorted(set(sources)))

"""Whose samples of a link count where several report it: one source alone can't move its level.

A figure rests on the *reference*: the own prober, where it has measured the link within the memory
of estimates; else whoever has reported the link longest. What others send is compared with it:

- What agrees counts only where the reference has fewer than :data:`ENOUGH` samples, and of each
  source at most as many as the reference has: a hundred samples of one source are no hundred votes.
- What contradicts is *disputed*: it is kept, counted and named, and changes nothing, whatever its
  number and whatever its time stamps.
- A new level counts once a second source claims the same one, or once the reference finds it. It
  does not against the own prober's newer measurements, nor against as many other sources that have
  measured since and still see the old level.

A link that only one source has reported is estimated from all that it sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planner.model.estimate import Figures, Origin
from probes.estimation.bounds import MAD_TO_SIGMA
from probes.medians import median
from probes.samples import OWN, Sample

ENOUGH = 3
"""Samples whose median one odd test does not move."""
CLAIM = 3
"""Newest samples of a source that agree with each other: two sources' are six in a row, as many as
a change of level takes (:mod:`probes.analysis.level_shift`)."""
LEAST_TOLERANCE = 0.1
"""Of a logarithm: a smaller change alters no decision."""
NOISES = 2.0
DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class FromSource:
    """What one source reported of a link and metric: the samples that may count, oldest first.

    Attributes
    ----------
    source : str
        :data:`probes.samples.OWN` is trusted.
    first_id : int
        In the order of arrival, of the first of its level.
    """

    source: str
    first_id: int
    samples: list[Sample]


@dataclass(frozen=True, slots=True)
class Agreed:
    """Which samples of a link and metric count.

    Attributes
    ----------
    samples : list of Sample
        Oldest first.
    reported_by : tuple of str
        Whose these are, where the own prober's are not among them; else empty.
    disputed : tuple of Disputed
    is_shift : bool
        Whether they are a new level that the reference has not found yet.
    """

    samples: list[Sample]
    reported_by: tuple[str, ...] = ()
    disputed: tuple[Disputed, ...] = ()
    is_shift: bool = False


class Disputed(NamedTuple):
    """Samples of one source that contradict a link's level, and do not count.

    Attributes
    ----------
    samples : list of Sample
    of : int
        How many of this source may have counted.
    """

    source: str
    samples: list[Sample]
    of: int


class _Claim(NamedTuple):
    source: str
    level: float
    since_s: float
    samples: list[Sample]


def agreed(found: Sequence[FromSource], log_of: Callable[[Sample], float], noise: float) -> Agreed:
    """Return which samples of a link and metric count.

    Parameters
    ----------
    found : sequence of FromSource
        Each source once, with at least one sample.
    log_of : callable
        Logarithm of what a sample says of the quantity, so that samples can be compared.
    noise : float
        Of one test about the level: 90 % lie within it, as a logarithm.
    """
    if len(found) == 1:
        return Agreed(found[0].samples, trusted(*(one.source for one in found)))
    reference = reference_of(found)
    others = [one for one in found if one is not reference]
    level, tolerance = _level(list(map(log_of, reference.samples)), noise)

    def is_near(sample: Sample, to: float) -> bool:
        return abs(log_of(sample) - to) <= tolerance

    needed = min(CLAIM, len(reference.samples))
    claims = []
    for one in others:
        run = _claimed(one.samples, log_of, level, tolerance, needed)
        if run:
            middle = median(map(log_of, run))
            claims.append(_Claim(one.source, middle, run[0].measured_at_s, run))
    shift = _confirmed(claims, reference, others, is_near, tolerance)
    if shift is not None:
        return _after_shift(shift, found, is_near)
    counting = list(reference.samples)
    names = [reference]
    disputed = []
    for one in others:
        against = [sample for sample in one.samples if not is_near(sample, level)]
        if against:
            disputed.append(Disputed(one.source, against, len(one.samples)))
        if len(reference.samples) < ENOUGH:
            near = [sample for sample in one.samples if is_near(sample, level)]
            counting += near[-len(reference.samples) :]
            names += [one] if near else []
    counting.sort(key=lambda sample: sample.measured_at_s)
    return Agreed(counting, trusted(*(one.source for one in names)), tuple(disputed))


def reference_of(found: Sequence[FromSource]) -> FromSource:
    """Return the own prober's samples, else those of whoever has reported longest."""
    return min(found, key=lambda one: (one.source != OWN, one.first_id, one.source))


def _level(logs: Sequence[float], noise: float) -> tuple[float, float]:
    """Return a level and how far from it samples agree with it."""
    level = median(logs)
    deviation = MAD_TO_SIGMA * median(abs(value - level) for value in logs)
    return level, max(LEAST_TOLERANCE, NOISES * noise, DEVIATIONS * deviation)


def _claimed(
    samples: Sequence[Sample],
    log_of: Callable[[Sample], float],
    level: float,
    tolerance: float,
    needed: int,
) -> list[Sample]:
    """Return a source's newest samples if they claim another level, all of one run; else none."""
    newest = list(samples[-needed:])
    middle = median(map(log_of, newest))
    if len(newest) < needed or abs(middle - level) <= tolerance:
        return []

    def belongs(sample: Sample) -> bool:
        value = log_of(sample)
        return abs(value - level) > tolerance and abs(value - middle) <= tolerance

    if not all(map(belongs, newest)):
        return []
    begin = len(samples) - needed
    while begin and belongs(samples[begin - 1]):
        begin -= 1
    return list(samples[begin:])


class _Shift(NamedTuple):
    level: float
    since_s: float
    sources: frozenset[str]


def _confirmed(
    claims: Sequence[_Claim],
    reference: FromSource,
    others: Sequence[FromSource],
    is_near: Callable[[Sample, float], bool],
    tolerance: float,
) -> _Shift | None:
    """Return the new level that more than one source has found, if there is one."""
    best: _Shift | None = None
    for claim in claims:
        allies = [ally for ally in claims if abs(ally.level - claim.level) <= tolerance]
        # When a second one had seen it: what measured before may have seen the old level rightly.
        since = sorted(ally.since_s for ally in allies)[: 2 if len(allies) > 1 else 1]
        behind = {ally.source for ally in allies}
        against: set[str] = set()
        for one in (reference, *others):
            if one.source in behind:
                continue
            seen = [sample for sample in one.samples if sample.measured_at_s >= since[-1]]
            if not seen:
                continue
            near = sum(is_near(sample, claim.level) for sample in seen)
            (behind if 2 * near > len(seen) else against).add(one.source)
        refuted = OWN in against or (OWN not in behind and len(against) >= len(behind))
        if len(behind) < 2 or refuted:
            continue
        if best is None or (OWN in behind, len(behind)) > (OWN in best.sources, len(best.sources)):
            best = _Shift(claim.level, min(since), frozenset(behind))
    return best


def _after_shift(
    shift: _Shift, found: Sequence[FromSource], is_near: Callable[[Sample, float], bool]
) -> Agreed:
    """Return the samples of a new level; those of before are of the old one."""
    near: dict[str, list[Sample]] = {}
    disputed = []
    for one in found:
        since = [sample for sample in one.samples if sample.measured_at_s >= shift.since_s]
        near[one.source] = [sample for sample in since if is_near(sample, shift.level)]
        against = [sample for sample in since if not is_near(sample, shift.level)]
        if against and one.source != OWN:
            disputed.append(Disputed(one.source, against, len(one.samples)))
    own = near.get(OWN, [])
    sources = {OWN} if len(own) >= ENOUGH else shift.sources
    samples = sorted(
        (sample for source in sources for sample in near[source]),
        key=lambda sample: sample.measured_at_s,
    )
    names = () if own else tuple(sorted(shift.sources))
    return Agreed(samples, names, tuple(disputed), is_shift=not own)


class Mark(NamedTuple):
    """Whose samples an estimate rests on, as :class:`planner.model.estimate.Figures` say it."""

    reported_by: tuple[str, ...] | None
    unconfirmed: bool | None
    disputed: int | None
    disputed_by: tuple[str, ...] | None

    @classmethod
    def of(cls, found: Agreed) -> Mark | None:
        """Return who reported the samples that count, and who contradicts them, if need be."""
        if not (found.reported_by or found.disputed):
            return None
        return cls(
            found.reported_by or None,
            found.is_shift or None,
            sum(len(one.samples) for one in found.disputed) or None,
            tuple(sorted(one.source for one in found.disputed)) or None,
        )


def figures_with(figures: Figures | None, mark: Mark | None) -> Figures | None:
    """Return the figures of an estimate with whose samples it rests on."""
    return figures if mark is None else (figures or Figures())._replace(**mark._asdict())


def is_own(origin: Origin) -> bool:
    """Whether samples of the own prober are behind an estimate, or there is but one source."""
    return origin.figures is None or not origin.figures.reported_by


def trusted(*sources: str) -> tuple[str, ...]:
    """Return whose samples are to be named: nobody's where the own prober's are among them."""
    return () if OWN in sources else tuple(sorted(set(sources)))

"""What transfers teach of a path: how much it carries, or how much at least.

A transfer says what it achieved; what limited that is another matter (`limited_by`). Limited by the
*network*, it is a sample of the path; by its *application* or a *disk*, a lower bound, as a test is
that its sender paced. Where that is *unknown*, other transfers of its program tell: if these reach
the rates of their plans on other pairs, it is believed about the path; if not, or if there are
none, it is a lower bound. What transfers of a pair, or from or to a pool of VMs, carried at the
same time is added up. The same holds whoever reports and through whichever door:
docs/estimates.md#what-transfers-teach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from planner.model.estimate import Achieved
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.estimation.agreement import ENOUGH, claimed_level
from probes.estimation.groups import Bools, Floats, Ints
from probes.metrics import number_of
from probes.samples import KNOWN_LIMITS, NameTable, Rows, Samples, read_detail

REACHED = 0.9
"""Of its plan's rate: a transfer with as much has reached it."""
OF_THE_TIME_S = 7 * 86_400.0
"""Transfers of a program that began within so long of another are its company."""


class Readings(NamedTuple):
    """The readings of some samples, in their order.

    Attributes
    ----------
    achieved : array of bool
        Whether something other than the path may have held it: those of transfers and paced tests.
    of_path, unexplained : array of bool
        Of these: whether it is believed about the path, or else is a lower bound; and whether its
        reporter does not know what limited it.
    together : array
        What all transfers between its ends, or on a pool of VMs at either, carried while it ran,
        over what itself did.
    who : list of str
        Its reporter, as it names itself; sources of samples that came in name theirs.
    """

    achieved: Bools
    of_path: Bools
    unexplained: Bools
    together: Floats
    who: list[str]

    def at(self, places: Ints) -> Readings:
        """Return those of some samples."""
        named = [self.who[place] for place in places.tolist()]
        achieved, of_path, unexplained = (column[places] for column in self[:3])
        return Readings(achieved, of_path, unexplained, self.together[places], named)


class _Finished(NamedTuple):
    """Transfers that finished, as arrays: rates of all their VMs, of those of their plans."""

    pair: Any
    pooled: Any  # whether either end of the pair is a pool
    begin_s: Floats
    took_s: Floats
    gbps: Floats
    share: Floats
    program: Any

    def where(self, chosen: Any) -> _Finished:
        return _Finished(*(column[chosen] for column in self))


class Learnt(NamedTuple):
    """The rate of a link as its transfers tell it.

    Attributes
    ----------
    rows : Rows | None
        Samples in place of those of tests; None where these stay.
    is_unconfirmed : bool
        Whether the rows contradict tests, and none has confirmed them yet.
    achieved : Achieved
        How the transfers were read.
    """

    rows: Rows | None
    is_unconfirmed: bool
    achieved: Achieved


def readings_of(samples: Samples, finished: Samples) -> Readings:
    """Read samples of throughput.

    Parameters
    ----------
    samples : Samples
    finished : Samples
        Durations of all transfers, of whatever pair; other samples among them tell nothing.
    """
    count = len(samples)
    flags = np.zeros((3, count), np.bool_)
    found = Readings(flags[0], flags[1], flags[2], np.ones(count), [""] * count)
    is_transfer = samples.are_transfers
    details, told = list(samples.details), ('"limited_by"', '"paced_at_mbps"')
    stated = np.array([any(word in text for word in told) for text in details], np.bool_)
    is_rate = samples.rows["metric"] == number_of("aggregate_mbps")
    chosen = np.flatnonzero(is_rate & (is_transfer | stated[samples.rows["detail"]]))
    if not len(chosen):
        return found
    programs: dict[tuple[str, str], int] = {}
    others = _finished(finished.of_metric("transfer_s").with_names(samples.names), programs)
    for at in chosen.tolist():
        row = samples.rows[at]
        detail = read_detail(details[row["detail"]])
        limit = detail.get("limited_by", "unknown")
        if "paced_at_mbps" in detail:
            limit = "application"
        elif not is_transfer[at] and limit in ("network", "unknown"):
            continue  # a measurement as any other
        found.achieved[at], found.unexplained[at] = True, limit not in KNOWN_LIMITS
        found.who[at] = str(detail.get("who") or "")
        took_s, pair = float(row["duration_s"]), (int(row["src"]), int(row["dst"]))
        own_gbit = BITS_PER_BYTE * _number(detail, "volume_gb")
        begin_s = float(row["measured_at_s"])
        if took_s > 0 and own_gbit > 0:
            same, pooled = others.pair == pair, _pooled(pair, detail, samples.names)
            concurrent = others.where(same.all(1) | (same & others.pooled & pooled).any(1))
            begins, ends = concurrent.begin_s, concurrent.begin_s + concurrent.took_s
            over_s = np.minimum(begin_s + took_s, ends) - np.maximum(begin_s, begins)
            carried_gbit = float(np.maximum(over_s, 0.0) @ concurrent.gbps)
            found.together[at] = max(1.0, carried_gbit / own_gbit)
        found.of_path[at] = limit == "network"
        if found.unexplained[at]:
            alike = others.where(
                (others.program == programs.get(_program(detail), -1))
                & (others.pair != pair).any(axis=1)
                & (np.abs(others.begin_s - begin_s) <= OF_THE_TIME_S)
                # Slower ones show nothing: the program may be what holds this one.
                & (others.gbps >= own_gbit / max(took_s, 1e-9))
                & ~np.isnan(others.share)
            )
            found.of_path[at] = bool(len(alike.share) and np.median(alike.share) >= REACHED)
    return found


def _number(detail: Mapping[str, Any], name: str) -> float:
    value = detail.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0


def _program(detail: Mapping[str, Any]) -> tuple[str, str]:
    return str(detail.get("who") or ""), str(detail.get("label") or "")


def _pooled(pair: Sequence[int], detail: Mapping[str, Any], names: NameTable) -> list[bool]:
    """Return of each end whether other transfers share its VMs."""
    pools = detail.get("pools")
    numbers = [names.get(str(one), -1) for one in pools] if isinstance(pools, list) else []
    return [end in numbers for end in pair]


def _finished(samples: Samples, programs: dict[tuple[str, str], int]) -> _Finished:
    rows, details = samples.rows, list(samples.details)
    told = [read_detail(details[number]) for number in rows["detail"].tolist()]
    took_s = rows["value"]
    gbps = BITS_PER_BYTE * np.array([_number(one, "volume_gb") for one in told]) / took_s
    planned = np.array([_number(one, "planned_gbps") for one in told])
    share = np.divide(gbps, planned, out=np.full(len(told), np.nan), where=planned > 0)
    numbers = [programs.setdefault(_program(one), len(programs)) for one in told]
    pair = np.stack((rows["src"], rows["dst"]), axis=1)
    ends = zip(pair.tolist(), told, strict=True)
    pooled = np.array([_pooled(pair_of, one, samples.names) for pair_of, one in ends], np.bool_)
    return _Finished(
        pair,
        pooled.reshape(pair.shape),
        rows["measured_at_s"],
        took_s,
        gbps,
        share,
        np.array(numbers),
    )


def learnt(
    rows: Rows, read: Readings, tested: Rows, level: float, slow_below: float, tolerance: float
) -> Learnt:
    """Return the samples that the transfers of a link are, and how many are lower bounds.

    Parameters
    ----------
    rows : Rows
        Transfers of the link, with the fields of :data:`.CANDIDATE`; at least one.
    read : Readings
        Of these.
    tested : Rows
        Tests of the link that count.
    level : float
        Logarithm of the rate that these show; without any, of what models say.
    slow_below : float
        Logarithm of a rate below which each connection may be slow.
    tolerance : float
        Of a logarithm: rates that differ by less are the same.
    """
    alone = rows["log"]
    together = alone + np.log(read.together)
    # Of transfers at the same time, one VM pair carried between what each did and what all did.
    of_path = read.of_path & ((together <= level) | (alone >= level))
    rates = np.where(together <= level, together, np.maximum(alone, level))
    if len(tested):
        with np.errstate(divide="ignore"):
            share = np.log(rows["connections"] / max(1, tested["connections"].max()))
        is_slow = (share < 0) & (rates < share + slow_below)
        of_path &= ~(is_slow & (np.abs(rates - share - level) <= tolerance))
    short = read.unexplained & ~of_path & (together < level - tolerance)
    short &= rows["measured_at_s"] > tested["measured_at_s"].max(initial=-np.inf)
    # What arrived was carried, whatever held the transfer.
    of_path |= alone > level + tolerance
    achieved = Achieved(
        of_path=int(of_path.sum()),
        at_least=int((~of_path).sum()),
        gbps=round(float(np.exp(np.median(rates))) / MBPS_PER_GBPS, 4),
        contradicts=bool(len(tested)) and int(short.sum()) >= ENOUGH,
    )
    claims = rows[of_path]
    claims["log"], claims["steady"] = rates[of_path], np.exp(rates[of_path])
    claims = claims[np.argsort(claims["measured_at_s"], kind="stable")]
    if not len(tested):
        found = (
            claimed_level("", claims, -np.inf, tolerance, ENOUGH) if len(claims) >= ENOUGH else None
        )
        if found:
            claims = claims[claims["measured_at_s"] >= found.since_s]
        return Learnt(claims if len(claims) >= ENOUGH else None, False, achieved)
    # Tests that came later may refute claims; those after them count again.
    for part in (claims, claims[claims["measured_at_s"] > tested["measured_at_s"].max()]):
        if len(part) < ENOUGH or not (found := claimed_level("", part, level, tolerance, ENOUGH)):
            break
        seen = tested[tested["measured_at_s"] >= found.since_s]
        near = np.abs(seen["log"] - found.level) <= tolerance
        part = part[part["measured_at_s"] >= found.since_s]
        if 2 * np.count_nonzero(near) > len(seen):
            return Learnt(np.concatenate([part, seen[near]]), False, achieved)
        if len(seen) < ENOUGH:
            return Learnt(part, True, achieved)
    return Learnt(None, False, achieved)

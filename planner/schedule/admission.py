"""Decides which transfers can be promised their deadlines.

A transfer may be admitted if it can be moved in its window together with all that were admitted
before, whose routes and times may change but whose deadlines hold (the guarantee of Amoeba: Zhang
et al., *Guaranteeing Deadlines for Inter-Datacenter Transfers*, EuroSys 2015). There, and in most
systems since, transfers are decided one after the other. Here those of one class are decided
together, for the greatest total worth: branch and bound over the linear program, best bound first,
going down each branch until it is settled.
:func:`remedies` finds changes that would admit a refused one without breaking a promised deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from itertools import count
from math import ceil, floor, fsum, gcd, inf

import numpy as np

from planner.fields.shared import MOST_VMS
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import MoreVms, Remedies
from planner.schedule.problem import ROUNDED_SHARE
from planner.schedule.program import WHOLE, ScheduleProgram

# A search stops after this much work, in solver iterations times rows, plus the overhead of each
# node: about five seconds of a core. Ten transfers with their own windows take a tenth at most.
MOST_WORK = 200_000_000
WORK_OF_NODE = 100_000
PRECISION = 1e-6


def admit(program: ScheduleProgram, worth: Mapping[int, float]) -> tuple[set[int], float, float]:
    """Admit some of the transfers that are decided together, and put them `in` the program.

    Parameters
    ----------
    program : ScheduleProgram
        With all of these transfers out.
    worth : mapping
        Above 0, by transfer.

    Returns
    -------
    tuple
        Those admitted, their total worth, and a proven bound: no choice is worth more.
    """
    best, bound = _search(program, worth)
    program.put(worth, "out")
    program.put(best, "in")
    admitted = set(best)
    for number in worth:
        if number in admitted or _total(worth, {*admitted, number}) > bound:
            continue
        program.put([number], "wanted")
        if program.fits(number):
            admitted.add(number)
        program.put([number], "in" if number in admitted else "out")
    reached = _total(worth, admitted)
    return admitted, reached, max(reached, bound)


def _total(worth: Mapping[int, float], numbers: Iterable[int]) -> float:
    return fsum(worth[number] for number in numbers)


def _attainable(values: list[float]) -> Callable[[float], float]:
    """Return a function of a bound: the most that whole transfers can be worth under it.

    That is a multiple of their common divisor: of their equal value, or of whole cents.
    """
    cents = [round(100 * value) for value in values]
    whole = all(abs(100 * v - cent) <= PRECISION for v, cent in zip(values, cents, strict=True))
    unit = values[0] if len(set(values)) == 1 else gcd(*cents) / 100 if whole else 0.0

    def attainable(bound: float) -> float:
        bound = max(0.0, bound) * (1.0 + PRECISION)
        return bound if unit <= bound * PRECISION else floor(bound / unit) * unit

    return attainable


def _search(program: ScheduleProgram, worth: Mapping[int, float]) -> tuple[list[int], float]:
    """Return the best choice found by branch and bound, and the proven most of any."""
    attainable = _attainable(list(worth.values()))
    best: list[int] = []
    reached, work, order = 0.0, 0, count()
    waiting: list[tuple[float, int, dict[int, bool]]] = [(-inf, next(order), {})]

    def is_beaten(bound: float) -> bool:
        return bound < inf and attainable(bound) <= reached * (1.0 + 2 * PRECISION)

    while waiting and work < MOST_WORK and not is_beaten(-waiting[0][0]):
        least, _, decided = heappop(waiting)
        bound = -least
        # Settle this node, then those below it that admit one more undecided transfer each.
        while not is_beaten(bound):
            if work >= MOST_WORK:
                heappush(waiting, (-bound, next(order), decided))
                break
            for state, taken in (("in", True), ("out", False), ("wanted", None)):
                program.put([n for n in worth if decided.get(n) is taken], state)
            before = program.work
            relaxed = program.most_worth(worth)
            work += program.work - before + WORK_OF_NODE
            if relaxed is None:
                break
            bound, shares = min(bound, relaxed[0]), relaxed[1]
            whole = [number for number, share in shares.items() if share >= WHOLE]
            if (total := _total(worth, whole)) > reached:
                best, reached = whole, total
            parts = {
                number: worth[number] * min(share, 1.0 - share)
                for number, share in shares.items()
                if 1.0 - WHOLE < share < WHOLE and number not in decided
            }
            if not parts or is_beaten(bound):
                break
            branch = max(parts, key=parts.__getitem__)
            heappush(waiting, (-bound, next(order), {**decided, branch: False}))
            decided = {**decided, branch: True}
    bounds = [-least for least, _, _ in waiting if not is_beaten(-least)]
    return best, attainable(max(bounds)) if bounds else reached


def remedies(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> Remedies:
    """Return changes that would each admit a refused transfer while admitted ones stay admitted.

    Parameters
    ----------
    program : ScheduleProgram
        Its last slot is long enough for any transfer alone, and no window reaches into it.
    regions : tuple of str
        Names of sites.
    """
    commodity = program.commodities[number]
    program.put([number], "wanted")
    share = program.most_moved(number) if commodity.last >= commodity.first else 0.0
    more_vms = _more_vms(program, number, regions)
    deadline_s = _earliest_end_s(program, number)
    program.let_send_until(number, commodity.last)
    program.put([number], "out")
    moved_gb = share * commodity.volume_gbit / BITS_PER_BYTE
    return Remedies(
        moved_gb * (1 - ROUNDED_SHARE) if share > ROUNDED_SHARE else 0.0, deadline_s, more_vms
    )


def _earliest_end_s(program: ScheduleProgram, number: int) -> float:
    """Return the earliest deadline, in whole seconds, that the whole transfer can meet."""
    commodity = program.commodities[number]
    too_early, late = max(commodity.last, commodity.first - 1), len(program.cuts_s) - 2
    program.put([number], "wanted")
    while late - too_early > 1:
        middle = (late + too_early) // 2
        program.let_send_until(number, middle)
        if program.fits(number):
            late = program.last_slot(number)
        else:
            too_early = middle
    program.let_send_until(number, late)
    program.fits(number)  # adds the relays that it needs
    program.put([number], "in")
    part = program.least_part(number, late)
    start_s, end_s = program.cuts_s[late], program.cuts_s[late + 1]
    least_s = start_s + part * (end_s - start_s)
    window_s = least_s - program.cuts_s[commodity.first]
    return float(ceil(least_s - window_s * (1.0 - WHOLE) / 2))


def _more_vms(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> MoreVms | None:
    """Return a smallest sufficient set of VMs, as far as rounding up finds it."""
    commodity = program.commodities[number]
    if commodity.last < commodity.first:
        return None
    program.put([number], "in")
    found = program.fewest_vms({})
    if found is None:
        return None
    fractions, at_least = found
    # Site by site, the smallest fraction first: can it do with the whole VMs below?
    fixed: dict[int, float] = {}
    for site in np.argsort(fractions, kind="stable").tolist():
        up = ceil(fractions[site] - ROUNDED_SHARE)
        if up <= ROUNDED_SHARE + fractions[site] or up == 0:
            continue
        fewer = program.fewest_vms({**fixed, site: float(up - 1)})
        if fewer and _whole(fewer[0]) < _whole(fractions):
            fixed[site] = float(up - 1)
            fractions = fewer[0]
    if fractions.max() > MOST_VMS:
        return None
    of = zip(regions, fractions.tolist(), strict=True)
    vms = {region: ceil(more - ROUNDED_SHARE) for region, more in of if more > ROUNDED_SHARE}
    return MoreVms(vms, max(1, ceil(at_least - ROUNDED_SHARE)))


def _whole(fractions: np.ndarray) -> int:
    return int(np.ceil(fractions - ROUNDED_SHARE).sum())

"""What would admit a refused transfer without breaking a promised deadline."""

from __future__ import annotations

from math import ceil

import numpy as np

from planner.fields.shared import MOST_VMS
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import MoreVms, Remedies
from planner.schedule.solver import WHOLE, ScheduleProgram

# A solver's rounding does not justify another second or another VM.
ROUNDING = 1e-6


def remedies(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> Remedies:
    """Return what would admit one refused transfer while all admitted ones stay admitted.

    Parameters
    ----------
    program : ScheduleProgram
        Its last slot is long enough for any transfer alone, and nobody's window reaches into it.
    number : int
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
    return Remedies(moved_gb * (1 - ROUNDING) if share > ROUNDING else 0.0, deadline_s, more_vms)


def _earliest_end_s(program: ScheduleProgram, number: int) -> float:
    """Return the earliest time, in whole seconds, by which all of it can be moved."""
    commodity = program.commodities[number]
    late = len(program.cuts_s) - 2
    program.put([number], "in")
    program.let_send_until(number, late)
    late = program.last_slot_early(number)
    too_early = max(commodity.last, commodity.first - 1)
    program.put([number], "wanted")
    middle = late - 1  # mostly that is the last one already
    while late - too_early > 1:
        program.let_send_until(number, middle)
        if program.fits(number):
            late = program.last_slot(number)
        else:
            too_early = middle
        middle = (late + too_early) // 2
    program.let_send_until(number, late)
    program.fits(number)  # leaves the relays that it takes
    program.put([number], "in")
    part = program.least_part(number, late)
    start_s, end_s = program.cuts_s[late], program.cuts_s[late + 1]
    least_s = start_s + part * (end_s - start_s)
    window_s = least_s - program.cuts_s[commodity.first]
    return float(ceil(least_s - window_s * (1.0 - WHOLE) / 2))


def _more_vms(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> MoreVms | None:
    """Return a smallest set of VMs that would do, as far as rounding up finds it."""
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
        up = ceil(fractions[site] - ROUNDING)
        if up <= ROUNDING + fractions[site] or up == 0:
            continue
        fewer = program.fewest_vms({**fixed, site: float(up - 1)})
        if fewer and _whole(fewer[0]) < _whole(fractions):
            fixed[site] = float(up - 1)
            fractions = fewer[0]
    if fractions.max() > MOST_VMS:
        return None
    vms = {
        regions[site]: ceil(more - ROUNDING)
        for site, more in enumerate(fractions.tolist())
        if more > ROUNDING
    }
    return MoreVms(vms, max(1, ceil(at_least - ROUNDING)))


def _whole(fractions: np.ndarray) -> int:
    return int(np.ceil(fractions - ROUNDING).sum())

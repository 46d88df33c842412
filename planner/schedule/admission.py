"""Decides which transfers can be promised their deadlines.

Transfers are taken by priority. One is admitted if and only if it can be moved in its window
together with all that were admitted before, whose routes and times may change but whose deadlines
hold (the guarantee of Amoeba: Zhang et al., *Guaranteeing Deadlines for Inter-Datacenter
Transfers*, EuroSys 2015). There it is a heuristic over slots of equal length; here each decision
is a linear program, so what is refused could not have been admitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.schedule.program import WHOLE, ScheduleProgram


def admit(program: ScheduleProgram, order: Sequence[int]) -> set[int]:
    """Return the transfers that are admitted, in a program where they are then `in`.

    All that are undecided are tried together, over the paths that are known so far. Those before
    the first that does not fit whole are then admitted, as they fit side by side; that one is tried
    alone, over all paths, which settles it.

    Parameters
    ----------
    program : ScheduleProgram
        With all of them out.
    order : sequence of int
        Who is decided first.
    """
    admitted: set[int] = set()
    position = 0
    while position < len(order):
        tried = list(order[position:])
        program.put(tried, "wanted")
        shares = program.together(tried)
        fit = next((at for at, share in enumerate(shares) if share < WHOLE), len(tried))
        program.put(tried[fit:], "out")
        program.put(tried[:fit], "in")
        admitted.update(tried[:fit])
        position += fit
        if fit == len(tried):
            break
        program.put([tried[fit]], "wanted")
        if program.fits(tried[fit]):
            program.put([tried[fit]], "in")
            admitted.add(tried[fit])
        else:
            program.put([tried[fit]], "out")
        position += 1
    return admitted

"""What limits transfers over shared VMs, as the answers to several questions say it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.answer import Bottleneck
from planner.model.errors import InfeasibleError
from planner.model.shared_resources import Floats, SiteResources


def vms_by_region(regions: Sequence[str], vms: Floats) -> dict[str, int]:
    """Return how many VMs there are of each region that has any."""
    counts = zip(regions, vms.tolist(), strict=True)
    return {region: int(count) for region, count in counts if count}


def bottlenecks_of_rows(
    resources: SiteResources, regions: Sequence[str], worth_s: Floats, least_s: float = 0.0
) -> tuple[Bottleneck, ...]:
    """Return the rows that decide a duration, the most valuable first.

    Parameters
    ----------
    worth_s : array, length rows
        What one more VM there saves, at the margin.
    least_s : float
        Rows that save no more are left out.
    """
    found = []
    for row in np.argsort(-worth_s, kind="stable").tolist():
        if worth_s[row] > least_s:
            kind, site = resources.row(row)
            worth = float(worth_s[row])
            found.append(Bottleneck(kind, regions[site], worth, "s per VM, at the margin"))
    return tuple(found)


def links_that_take_turns(
    regions: Sequence[str], links_gbit: Floats, vms: Floats, connections: int
) -> tuple[str, ...]:
    """Return a warning if a VM has fewer connections than links, by volumes of shape (n, n)."""
    used = links_gbit > 0
    partners = np.maximum(used.sum(axis=0), used.sum(axis=1)) / np.maximum(vms, 1)
    busiest = int(partners.argmax())
    if partners[busiest] <= connections:
        return ()
    return (
        f"a VM at {regions[busiest]} has {partners[busiest]:.0f} links and only {connections} "
        "connections; the rates hold if links take turns",
    )


def too_late(deadline_s: float, needed_s: float, kind: str, region: str) -> InfeasibleError:
    """Return the error that a deadline is too early, for a kind of limit at a region."""
    return InfeasibleError(
        f"the deadline of {deadline_s:.0f} s is below the {needed_s:.0f} s that these VMs need "
        f"(the limit is {kind} at {region})",
        f"Allow at least {needed_s:.0f} s, or raise `vms` there.",
    )

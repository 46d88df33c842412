"""Limits of transfers over shared VMs, as the answers to several questions report them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.answer import Bottleneck
from planner.model.errors import InfeasibleError
from planner.model.estimate import ADDRESS_KINDS, Bound
from planner.model.network import Network
from planner.model.shared_resources import ONE, SITE_KINDS, Floats, Row, SiteResources
from planner.model.units import enough, start_texts, too_short_texts

PAIR_CONNECTIONS = 64
"""Of one VM to one other, at most, where many share them: as many as rates were measured with."""
# Rounding takes no further connection.
SAME_COUNT = 1e-6
BOTTLENECKS_SHOWN, BINDING = 5, 1e-3
"""Share of a duration below which the saving of one more VM is not reported."""
SAME_TIME = 1e-9
"""By what share a plan may be later than a deadline: what rounding adds."""


def caps_by_kind(
    network: Network, regions: Sequence[str], bound: Bound = "expected"
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the egress and ingress caps of one VM at n sites, and weights of links, (n, n) or 1.

    See :class:`.SiteResources`: the caps are those of all traffic, and a link over a kind of
    address whose cap is lower counts in proportion. Several sites may be of one region.
    """
    at = [network.index[region] for region in regions]
    egress_gbps, ingress_gbps = (caps[at] for caps in network.caps(bound))
    if not network.has_private_links:
        return egress_gbps, ingress_gbps, ONE, ONE
    public, private = ([caps[at] for caps in network.caps(bound, kind)] for kind in ADDRESS_KINDS)
    private_links = network.usual.whole["address"][np.ix_(at, at)]
    is_private = private_links == ADDRESS_KINDS.index("private") + 1
    out = np.where(is_private, private[0][:, None], public[0][:, None])
    into = np.where(is_private, private[1], public[1])
    weights = _weights(egress_gbps[:, None], out), _weights(ingress_gbps, into)
    return egress_gbps, ingress_gbps, *weights


def _weights(of_all_gbps: Floats, of_kind_gbps: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # caps that are not known are infinite
        return np.where(of_kind_gbps == of_all_gbps, 1.0, of_all_gbps / of_kind_gbps)


def vms_by_region(regions: Sequence[str], vms: Floats) -> dict[str, int]:
    """Return the number of VMs of each region that has any."""
    counts = zip(regions, vms.tolist(), strict=True)
    return {region: int(count) for region, count in counts if count}


def bottlenecks_of_rows(
    resources: SiteResources, regions: Sequence[str], worth_s: Floats, transfer_s: float
) -> tuple[Bottleneck, ...]:
    """Return the rows that decide how long a transfer takes, the most valuable first.

    `worth_s` is what one more VM saves at the margin, by row.
    """
    found, least_s = [], BINDING * transfer_s / max(len(worth_s), 1)
    for row in _worthwhile(worth_s, least_s):
        of = resources.row(row)
        ends = "VM at both ends" if len(resources.sites_to_widen(of)) > 1 else "VM"
        ends += "'s part" * of.kind.endswith(SITE_KINDS)
        worth, unit = float(worth_s[row]), f"s per {ends}, at the margin"
        found.append(Bottleneck(of.kind, row_place(of, regions), worth, unit))
    return tuple(found[:BOTTLENECKS_SHOWN])


def _worthwhile(worth_s: Floats, least_s: float) -> list[int]:
    order = np.argsort(-worth_s, kind="stable").tolist()
    return [row for row in order if worth_s[row] > least_s]


def widenings(
    resources: SiteResources, regions: Sequence[str], worth_s: Floats, least_s: float
) -> dict[tuple[int, ...], str]:
    """Return the sites where one more VM may save time, with their name, the most valuable first.

    `worth_s` is what one more VM of each row saves at the margin; rows that save no more than
    `least_s` are left out.
    """
    found: dict[tuple[int, ...], str] = {}
    for position in _worthwhile(worth_s, least_s):
        row = resources.row(position)
        if row.kind.endswith(SITE_KINDS):
            continue  # more VMs would share what the site allows
        sites = resources.sites_to_widen(row)
        place = regions[sites[0]] if len(sites) == 1 else row_place(row, regions)
        found.setdefault(sites, place)
    return found


def row_place(row: Row, regions: Sequence[str]) -> str:
    """Return the region of a row, or its link."""
    if row.link:
        return f"{regions[row.link[0]]} -> {regions[row.link[1]]}"
    return regions[row.site]


def too_late(deadline_s: float, needed_s: float, vm_start_s: float, *limit: str) -> InfeasibleError:
    """Return the error that a deadline is too early; a limit is its kind and its region."""
    starting, running = start_texts(vm_start_s)
    deadline, needed = too_short_texts(deadline_s, needed_s)
    allow, enough_s = enough(needed_s * (1 - SAME_TIME))
    binds = f" (the limit is {' at '.join(limit)})" if limit else ""
    return InfeasibleError(
        f"the deadline of {deadline} is below the {needed} that these VMs need{starting}{binds}",
        f"Allow at least {allow}, or raise `vms`{running}.",
        deadline_s=enough_s,
    )

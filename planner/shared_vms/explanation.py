"""The parts that answers about many transfers share: connections, limits and quotas.

Connections of links without a ramp test: see :mod:`planner.transfer.readings`. If a slow link may
be limited by its path or by each of its connections, plans assume the path. As long as VMs have
enough connections, each such link gets enough to carry its rate in the other case too, so that the
plan holds in both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from planner.fields.demands import Pair
from planner.fields.shared import RelayingRequest
from planner.model.answer import OneMoreVm, PathShare
from planner.model.baseline.modelled_links import least_cap
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import above_quotas, beyond_quotas, left_out_text, limited_texts
from planner.model.shared_resources import Floats, SiteResources, links_of_paths
from planner.model.vm_limits import vms_by_region, widenings
from planner.shared_vms.candidates import Candidate
from planner.shared_vms.connections import Streams
from planner.shared_vms.problem import participants
from planner.transfer.plan import MeasureFirst
from planner.transfer.readings import ramp, warnings
from planner.transfer.wording import plain_copy

RAMPS_SHOWN = 3
MORE_VMS_SHOWN = 3
PLACES_NAMED = 3


def one_more_vm(
    resources: SiteResources,
    regions: Sequence[str],
    worth_s: Floats,
    least_s: float,
    saved_with: Callable[[SiteResources], tuple[float, float]],
) -> tuple[OneMoreVm, ...]:
    """Return the least saving of one more VM at each of the tightest sites.

    Parameters
    ----------
    worth_s : array, length rows
        Marginal saving of one more VM there.
    least_s : float
        Smaller savings are not reported.
    saved_with : callable
        Returns the duration and the saving with other VMs.
    """
    places = widenings(resources, regions, worth_s, least_s / max(len(worth_s), 1))
    found = []
    for sites, place in list(places.items())[:MORE_VMS_SHOWN]:
        duration_s, saved_s = saved_with(resources.with_vm_at(*sites))
        if saved_s > least_s:
            found.append(OneMoreVm(place, duration_s, saved_s))
    return tuple(sorted(found, key=lambda more: -more.saved_s))


def vm_warnings(
    request: RelayingRequest,
    network: Network,
    vms: Mapping[str, int],
    ends: Collection[str],
    needed: Mapping[str, int],
    *,
    more: Iterable[OneMoreVm] = (),
    opened: OpenedConnections | None = None,
) -> tuple[str, ...]:
    """Return warnings about a plan's VMs: their connections, and the quotas that limit them.

    Parameters
    ----------
    vms, needed : mapping
        VMs of the plan, and connections that a VM needs, by region.
    more : iterable of OneMoreVm
        The plan's savings with further VMs.
    opened : OpenedConnections, optional
        The connections that it opens on links.
    """
    wanted = request.vms or max(vms.values(), default=1)
    limited = {
        region: wanted
        for region, count in vms.items()
        if region not in request.vms_in
        for site in [network.sites[region]]
        if count == request.vm_limits.most(site) == site.may_run(wanted) < wanted
    }
    # A place is a region, or a link of which both ends get one more.
    places = dict.fromkeys(region for one in more for region in one.region.split(" -> "))
    wider = {region: vms.get(region, 0) + 1 for region in places if region not in limited}
    taking_part, left_out = participants(request, network, ends), set[str]()
    if request.any_may_relay:
        left_out = network.sites.keys() - taking_part - request.forbidden
    busiest = max(needed, key=needed.__getitem__, default="")
    most = needed.get(busiest, 0)
    turns = (
        f"a VM at {busiest} needs {most} connections to have one on each link, and may open "
        f"{request.connections}; the rates hold if links take turns"
    )
    return (
        *([turns] if most > request.connections else []),
        *(opened.warnings(vms) if opened else ()),
        *beyond_quotas(network, vms),
        *limited_texts(network, limited),
        *(
            f"One more VM needs a larger quota: {text}"
            for text in limited_texts(network, above_quotas(network, wider))
        ),
        *left_out_text(left_out),
    )


def sending_warnings(
    request: RelayingRequest,
    network: Network,
    volumes_gb: Mapping[Pair, float],
    chosen: Candidate,
    opened: OpenedConnections,
    *,
    more: Iterable[OneMoreVm] = (),
) -> tuple[str, ...]:
    """Return :func:`vm_warnings` of a plan for volumes between ends, and what else it assumes.

    That plain copies do, where they do; and that no one measured what VMs carry over many links at
    once.
    """
    figures = chosen.figures
    links = [(network.links.get(src, {}).get(dst), gb) for (src, dst), gb in volumes_gb.items()]
    found = []
    if regions := figures.untested_at(chosen.links_gbit):
        named = ", ".join(regions[:PLACES_NAMED]) + ", ..." * (len(regions) > PLACES_NAMED)
        found.append(
            f"no one measured how much a VM at {named} carries over many links at once; its bounds "
            f"allow for {figures.untested_factor(chosen.links_gbit):.2g} times the time. Probe the "
            "caps, or import them"
        )
    if text := plain_copy(links, chosen.vm_start_s):
        found.append(text)
    vms, ends = vms_by_region(figures.regions, chosen.vms), dict.fromkeys(chain(*volumes_gb))
    of = vms, ends, opened.by_region
    return (*found, *vm_warnings(request, network, *of, more=more, opened=opened))


class OpenedConnections:
    """The connections that a plan opens on links.

    Attributes
    ----------
    by_region : dict of str to int
        Number that a VM of each region opens.
    counts : list of int
        Number that each stream opens.

    Parameters
    ----------
    streams : Streams
        With rates.
    connections : int
        Of a VM, at most.
    """

    def __init__(
        self,
        network: Network,
        resources: SiteResources,
        regions: Sequence[str],
        streams: Streams,
        vms: Floats,
        connections: int,
    ) -> None:
        self._network, self._regions, self._streams = network, regions, streams
        self._connections, self._slow = connections, resources.slow_gbps
        counts, out, into = streams.opened(resources, connections)
        if self._slow is not None:
            least = np.minimum(resources.connections_gbps, self._slow)
            slower = replace(resources, connections_gbps=least), connections
            if not np.any(streams.too_many(*slower, vms)):
                # The plan holds if they are slow.
                (counts, out, into), self._slow = streams.opened(*slower), None
        self._full = [
            f"{regions[at]} allows {allowed:.0f} connections {way}, and this needs {count:.0f}"
            + "; the rates hold if links take turns" * bool(count > allowed)
            for end, way in enumerate(("out", "in"))
            for at, count in enumerate((out, into)[end])
            if count >= (allowed := np.rint(connections * resources.site_vms[end, at]))
        ]
        self.counts = counts.astype(int).tolist()
        self.by_region = vms_by_region(regions, np.ceil(out / np.maximum(vms, 1.0)))

    def warnings(self, vms: Mapping[str, int]) -> tuple[str, ...]:
        """Return the plan's assumptions about links that no test has confirmed."""
        tail, head, of = links_of_paths(*self._streams[:3])
        rates, counts = np.zeros((2, len(self._regions), len(self._regions)))
        np.add.at(rates, (tail, head), self._streams.amount[of])
        np.add.at(counts, (tail, head), np.array(self.counts)[of])
        links = []
        for src, dst in np.argwhere(rates > 0).tolist() if self._connections > 1 else ():
            names = self._regions[src], self._regions[dst]
            in_doubt = self._slow is not None and self._slow[src, dst] < np.inf
            if min(vms[name] for name in names) > 1 or in_doubt:  # else nothing is assumed
                rate, count = float(rates[src, dst]), int(counts[src, dst])
                links.append(PathShare(names, rate, 1.0, count))
        return (*self._full, *warnings(links, dict(vms), self._network))


def ramps(
    network: Network, prices: Prices, links: Iterable[tuple[str, str]], connections: int
) -> tuple[MeasureFirst, ...]:
    """Return tests with more connections on links that the plan avoids.

    Parameters
    ----------
    links : iterable of (str, str)
        Source and destination, the most important first.
    connections : int
        Of one VM to another.
    """
    found: list[MeasureFirst] = []
    for src, dst in links:
        link = network.links.get(src, {}).get(dst)
        if link is None or not link.slow_connections:
            continue
        measured = link.measured_connections
        if connections >= measured and len(found) < RAMPS_SHOWN:
            cap = least_cap(network.sites[src], network.sites[dst], link.address)
            found.append(ramp(link, cap.expected, measured, prices))
    return tuple(found)

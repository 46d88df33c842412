"""Resources that transfers share: caps and connections of VMs at sites, and paths with limits.

Many transfers at once meet at sites, where VMs have caps and connections, and on links whose paths
end somewhere. For link flows ``X_uv`` in Gbit/s, ``n_v`` VMs at a site that open ``K`` connections
each, ``f_uv`` what one connection reaches over a link, ``P_uv`` and ``Q_uv`` what the link allows a
VM that sends and one that receives, and caps ``E_u``, ``I_v`` of one VM::

    connections out   sum_v X_uv / (K f_uv) <= n_u
    egress cap        sum_v X_uv / E_u <= n_u           ingress cap   sum_u X_uv / I_v <= n_v
    path              X_uv / P_uv <= n_u,               X_uv / Q_uv <= n_v

Accepting connections costs nothing, but a relay that splits TCP opens as many as it accepts: on
both links of a path through one, f is the slower link's (:meth:`SiteResources.as_opened`). Q is the
measured rate of one VM pair where its path ends there; what the sender's cap or its connections
make holds no receiver (:func:`planner.model.link_array.held_ends`).

Where a VM may send more over private addresses than over public ones, E is the higher cap, and a
flow over public addresses counts ``E / E_public`` times: shares of the cap of each flow's own kind
are added up. That is on the safe side, as both kinds together may use more of a network card.

Each row is in VMs of one site. Volumes (Gbit) in place of flows make it VM-seconds: the *load* of a
row, which over its VMs is the time that the row needs.

A path is no part of a VM: a slow one takes few connections and next to nothing of a cap, so what
remains is there for others. (Charging it ``X / A`` of the VM, ``A`` the saturated rate of the pair,
as Skyplane does (Jain et al., NSDI 2023), makes relays look better than they are.) That a second VM
doubles what a path carries is an assumption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.throughput import LIKELY

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

KINDS = ("connections out", "egress cap", "ingress cap")
"""Of the rows that a site has one of each."""
SITE_KINDS = ("site connections out", "site connections in")
"""Limits of a site in all, whatever its VMs; rows of caps hold them, too."""
PATH = "path"
SAME = 1e-12
"""Of rates: what rounding makes of equal ones."""
ONE: Floats = np.ones((1, 1))
UNLIMITED: Floats = np.full((1, 1), np.inf)
NO_SITE_LIMITS: Floats = np.full((2, 1), np.inf)


class Row(NamedTuple):
    """A row: its kind, the site whose VMs count, and the link if it is a path's."""

    kind: str
    site: int
    link: tuple[int, int] | None


@dataclass(frozen=True)
class SiteResources:
    """Rates, caps and VMs of n sites.

    Rows have codes: those of sites by kind and site, then those of paths by source and destination
    in VMs of the source, then the same in VMs of the destination.
    """

    rate_gbps: Floats
    """Shape (n, n): ``P``, row to column: what the link allows a VM that sends; 0 where there is no
    link."""
    connections_gbps: Floats
    """Shape (n, n): ``K f``: what all connections of one VM would carry, were they all there is."""
    egress_gbps: Floats
    ingress_gbps: Floats
    """Length n: caps of one VM, for all it sends and receives."""
    vms: Floats
    may_relay: NDArray[np.bool_]
    path_rows: Integers | None = None
    """Codes of the paths' rows that are among :attr:`rows`; all that can bind by default. There are
    up to 2 n^2 and few bind: who adds them as they are broken begins with none."""
    egress_weights: Floats = field(default_factory=lambda: ONE)
    ingress_weights: Floats = field(default_factory=lambda: ONE)
    """Shape (n, n), or 1: how often a flow counts against these caps: more than once over a kind of
    address whose cap is lower."""
    slow_gbps: Floats | None = None
    slow_probability: Floats | None = None
    """Shape (n, n), or None: what all connections of one VM would carry if each of a link's is
    slow, infinity where that is not in doubt, and its probability; see
    :mod:`planner.transfer.readings`."""
    received_gbps: Floats | None = None
    """Shape (n, n): ``Q``, infinite where the link holds no receiver; as `rate_gbps` unless
    stated."""
    link_gbps: Floats = field(default_factory=lambda: UNLIMITED)
    """Shape (n, n), or 1: what each link carries in all, of which each VM that sends has its
    part."""
    site_vms: Floats = field(default_factory=lambda: NO_SITE_LIMITS)
    """Shape (2, n), or (2, 1): connections that sites allow in all, out and in, over ``K``."""
    further: Floats | None = None
    """Shape (3, n, n), or None: of a low bound, what :func:`planner.solvers.joint.of_further_vms`
    asks of each link."""

    @property
    def count(self) -> int:
        """Number of sites."""
        return len(self.rate_gbps)

    @cached_property
    def s_per_gbit(self) -> Floats:
        """Time that a path needs for a Gbit of one that sends, (n, n); 0 where there is no link."""
        return _inverse(self._sent_gbps)

    @cached_property
    def _pair_s_per_gbit(self) -> Floats:
        """The same of one VM alone."""
        return _inverse(self.rate_gbps)

    @cached_property
    def _sent_gbps(self) -> Floats:
        """``P``, at most each VM's part of what the link carries in all."""
        return np.minimum(self.rate_gbps, self.link_gbps / np.maximum(self.vms, 1.0)[:, None])

    @cached_property
    def receivers_gbps(self) -> Floats:
        """``Q``, shape (n, n)."""
        return self.rate_gbps if self.received_gbps is None else self.received_gbps

    @cached_property
    def received_s_per_gbit(self) -> Floats:
        """The same of one that receives; 0 where the link holds none."""
        return _inverse(self.receivers_gbps)

    def paths_s(self, vms: Floats) -> Floats:
        """Return the time that paths alone need for a Gbit between so many VMs, shape (n, n)."""
        paths = np.maximum(self._pair_s_per_gbit / vms[:, None], self.received_s_per_gbit / vms)
        return np.maximum(paths, 1 / self.link_gbps)

    @cached_property
    def connections_s_per_gbit(self) -> Floats:
        """VM-seconds of connections that a Gbit takes, shape (n, n); 0 where there is no link."""
        return np.where(self.rate_gbps > 0, _inverse(self.connections_gbps), 0.0)

    def opened_s_per_gbit(self, src: Integers, hop: Integers, dst: Integers) -> Floats:
        """VM-seconds of connections that a Gbit takes on paths; direct ones hop to their end."""
        needs = self.connections_s_per_gbit
        return np.maximum(needs[src, hop], np.where(hop != dst, needs[hop, dst], 0.0))

    def as_opened(self, paths_gbit: Floats) -> SiteResources:
        """Return the same with each link's connections as slow as the paths over it make them."""
        if not (self.rows < self.count).any() and np.isinf(self.site_vms).all():
            return self  # connections bind nowhere
        paths, opened = np.nonzero(paths_gbit), np.zeros_like(self.rate_gbps)
        tail, head, of = links_of_paths(*paths)
        load = paths_gbit[paths] * self.opened_s_per_gbit(*paths)
        np.add.at(opened, (tail, head), load[of])
        links, gbps = links_of(paths_gbit), self.connections_gbps.copy()
        np.divide(links, opened, out=gbps, where=opened > 0)
        return replace(self, connections_gbps=gbps)

    @cached_property
    def cap_s_per_gbit(self) -> tuple[Floats, Floats]:
        """:meth:`caps_s` with the VMs that there may be."""
        return self.caps_s(self.vms)

    def caps_s(self, vms: Floats) -> tuple[Floats, Floats]:
        """Return the VM-seconds of egress and ingress caps that a Gbit takes, (n, n); 0 without.

        Of so many VMs, each has its part of the connections that its site allows: a Gbit takes the
        larger of its shares of these and of the cap, which is on the safe side.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.nan_to_num(self.egress_weights / self.egress_gbps[:, None], posinf=0.0)
            into = np.nan_to_num(self.ingress_weights / self.ingress_gbps, posinf=0.0)
        parts, needs = vms / self.site_vms, self.connections_s_per_gbit
        return np.maximum(out, parts[0][:, None] * needs), np.maximum(into, parts[1] * needs)

    def sites_s(self, links_gbit: Floats) -> float:
        """Return the time that volumes need by the connections of sites, however many VMs."""
        needs = links_gbit * self.connections_s_per_gbit
        return float((np.array([needs.sum(axis=1), needs.sum(axis=0)]) / self.site_vms).max())

    @cached_property
    def vm_gbps(self) -> tuple[Floats, Floats]:
        """The most that one VM of each site can send, and receive, over all links together."""
        connections = np.where(self.rate_gbps > 0, self.connections_gbps, 0)
        out = np.minimum(self.rate_gbps.sum(axis=1), connections.max(1, initial=0.0))
        into = self.receivers_gbps.sum(axis=0)
        return np.minimum(self.egress_gbps, out), np.minimum(self.ingress_gbps, into)

    @cached_property
    def rows(self) -> Integers:
        """Codes of the rows that can bind: those of sites, then :attr:`path_rows`.

        Where all paths of a site together are slower than its cap, the cap can't bind; where even
        its slowest connections together are faster than its paths or its cap, connections can't.
        """
        out_s, in_s = self.cap_s_per_gbit
        with np.errstate(invalid="ignore"):  # of receivers without a cap that no link holds
            into = (self.receivers_gbps * in_s).sum(axis=0) >= 1 - SAME
        sent = self._sent_gbps.sum(axis=1)
        slowest = np.where(self.rate_gbps > 0, self.connections_gbps, np.inf)
        slowest = slowest.min(1, initial=np.inf)
        slowest = np.minimum(slowest, slowest[self.may_relay].min(initial=np.inf))
        out = (sent > 0) & (slowest <= sent) & (slowest < self.egress_gbps)
        sends = (self._sent_gbps * out_s).sum(axis=1) >= 1 - SAME
        used = np.nonzero(np.concatenate([out, sends, into]))[0]
        if self.path_rows is not None:
            return np.concatenate([used, self.path_rows]).astype(np.int64)
        # Paths that are below cap and connections of the VM.
        rate, received = self._sent_gbps, self.receivers_gbps
        slower = (rate > 0) & (rate < self.connections_gbps) & (rate < self.egress_gbps[:, None])
        held = np.nonzero((received > 0) & (received < self.ingress_gbps))
        sends = self._path_code(*np.nonzero(slower), out=True)
        paths = sends, self._path_code(*held, out=False)
        return np.concatenate([used, *paths]).astype(np.int64)

    def _path_code(
        self, src: Integers, dst: Integers, *, out: bool | NDArray[np.bool_]
    ) -> Integers:
        n = self.count
        return np.asarray(len(KINDS) * n + np.where(out, 0, n * n) + src * n + dst)

    def with_path_rows(self, codes: Integers) -> SiteResources:
        """Return the same with other rows of paths."""
        return replace(self, path_rows=codes)

    def path_rows_above(self, links_gbit: Floats, time_s: float) -> Integers:
        """Return the codes of path rows that can bind and that volumes need longer than a time for.

        Of a path's two rows, the one of the end that needs longer: the other never does.
        """
        paths = self.paths_s(self.vms)
        src, dst = np.nonzero(links_gbit * paths > time_s)
        out = self.s_per_gbit[src, dst] / self.vms[src] >= paths[src, dst] * (1 - SAME)
        caps = np.minimum((self.egress_gbps * self.vms)[src], (self.ingress_gbps * self.vms)[dst])
        opened = np.where(out, (self.connections_gbps * self.vms[:, None])[src, dst], np.inf)
        binds = paths[src, dst] * np.minimum(caps, opened) > 1
        return self._path_code(src[binds], dst[binds], out=out[binds])

    @cached_property
    def with_fixed_vms(self) -> SiteResources:
        """The same with one row a path, enough where no VM is added: of the end that holds it."""
        return self.with_path_rows(self.path_rows_above(np.ones_like(self.rate_gbps), 0.0))

    @cached_property
    def paths(self) -> tuple[Integers, Integers]:
        """Source and destination of all rows of paths in :attr:`rows`; they come last."""
        n = self.count
        codes = (self.rows[self.rows >= len(KINDS) * n] - len(KINDS) * n) % (n * n)
        return codes // n, codes % n

    @cached_property
    def path_s_per_gbit(self) -> Floats:
        """VM-seconds that a Gbit takes of each row of :attr:`paths`."""
        n, codes = self.count, self.rows[self.rows >= len(KINDS) * self.count]
        sends = codes < (len(KINDS) + n) * n
        return np.where(sends, self.s_per_gbit[self.paths], self.received_s_per_gbit[self.paths])

    @cached_property
    def row_sites(self) -> Integers:
        """Site of each row."""
        n = self.count
        of_site = self.rows[self.rows < len(KINDS) * n] % n
        codes = self.rows[len(of_site) :]
        src, dst = self.paths
        return np.concatenate([of_site, np.where(codes < (len(KINDS) + n) * n, src, dst)])

    @cached_property
    def row_vms(self) -> Floats:
        """VMs of each row's site."""
        return self.vms[self.row_sites]

    def row(self, position: int) -> Row:
        """Return the row at a position."""
        code, n = int(self.rows[position]), self.count
        if code < len(KINDS) * n:
            kind, site = divmod(code, n)
            limited = kind and np.isfinite(np.broadcast_to(self.site_vms, (2, n))[kind - 1, site])
            return Row(KINDS[kind] + f" or {SITE_KINDS[kind - 1]}" * bool(limited), site, None)
        src, dst = divmod((code - len(KINDS) * n) % (n * n), n)
        return Row(PATH, int(self.row_sites[position]), (src, dst))

    @cached_property
    def position(self) -> Integers:
        """Position in :attr:`rows` of every code; past the end for the rest."""
        n = self.count
        found = np.full((len(KINDS) + 2 * n) * n, len(self.rows))
        found[self.rows] = np.arange(len(self.rows))
        return found

    @cached_property
    def _needs(self) -> tuple[list[int], list[list[list[float]]]]:
        """:attr:`position`, and what a Gbit needs, as lists: many times faster by element."""
        paths = self.s_per_gbit, self.received_s_per_gbit
        needs = self.connections_s_per_gbit, *self.cap_s_per_gbit, *paths
        return self.position.tolist(), np.stack(needs, axis=-1).tolist()

    def link_rows(self, src: int, dst: int) -> list[tuple[int, float]]:
        """Return the rows that a link loads, with the VM-seconds that a Gbit needs of each."""
        n, (position, needs) = self.count, self._needs
        path = len(KINDS) * n + src * n + dst
        codes = src, n + src, 2 * n + dst, path, path + n * n
        rows = zip(map(position.__getitem__, codes), needs[src][dst], strict=True)
        return [(row, need) for row, need in rows if row < len(self.rows)]

    def hops(self, src: int, dst: int) -> Integers:
        """Return the sites that may relay from one site to another."""
        may = self.may_relay & (self.rate_gbps[src] > 0) & (self.rate_gbps[:, dst] > 0)
        may[[src, dst]] = False
        return np.nonzero(may)[0]

    def connects(self, src: int, dst: int) -> bool:
        """Return whether a path, direct or through a relay, leads from one site to another."""
        return bool(self.rate_gbps[src, dst] > 0 or len(self.hops(src, dst)))

    def route_rows(self, route: Sequence[int]) -> dict[int, float]:
        """Return the rows that a path loads, with the VM-seconds that a Gbit needs of each.

        On both links of a path through a relay, connections are as slow as the slower link's.
        """
        position, needs = self._needs
        opened = max(needs[u][v][0] for u, v in pairwise(route))
        found = dict[int, float]()
        for u, v in pairwise(route):
            for row, need in self.link_rows(u, v):
                found[row] = found.get(row, 0.0) + (opened if row == position[u] else need)
        return found

    def connection_prices(self, row_prices: Floats) -> Floats:
        """Return the price of a VM-second of each site's connections, length n."""
        prices = np.zeros(self.count)
        of = np.nonzero(self.rows[: len(row_prices)] < self.count)[0]
        prices[self.rows[of]] = row_prices[of]
        return prices

    def link_prices(self, row_prices: Floats) -> Floats:
        """Return the price of a Gbit on every link at prices per VM-second, shape (n, n).

        Infinite where there is no link.
        """
        n = self.count
        whole = np.zeros(len(KINDS) * n)
        of_sites = len(row_prices) - len(self.paths[0])
        whole[self.rows[:of_sites]] = row_prices[:of_sites]
        prices = whole[:n, None] * self.connections_s_per_gbit
        egress, ingress = whole[n : 2 * n, None], whole[2 * n :]
        prices += np.where(egress > 0, egress * self.cap_s_per_gbit[0], 0.0)
        prices += np.where(ingress > 0, ingress * self.cap_s_per_gbit[1], 0.0)
        if len(row_prices) > of_sites:
            np.add.at(prices, self.paths, row_prices[of_sites:] * self.path_s_per_gbit)
        prices[self.rate_gbps <= 0] = np.inf
        return prices

    def site_loads(self, links_gbit: Floats, vms: Floats) -> Floats:
        """Return the loads of the rows of sites with so many VMs, shape (3, n)."""
        shares = links_gbit * self.connections_s_per_gbit
        out, into = self.cap_s_per_gbit if vms is self.vms else self.caps_s(vms)
        caps = (links_gbit * out).sum(axis=1), (links_gbit * into).sum(axis=0)
        return np.array([shares.sum(axis=1), *caps])

    def loads_of_paths(
        self, src: Integers, hop: Integers, dst: Integers, gbit: Floats
    ) -> tuple[Integers, Integers, Floats]:
        """Return each link's path, and the rows that it loads, and how much, shape (5, links).

        A row past the last one never binds.
        """
        n, (tail, head, of) = self.count, links_of_paths(src, hop, dst)
        share = (gbit * self.opened_s_per_gbit(src, hop, dst))[of]
        gbit = gbit[of]
        sent = gbit * self.s_per_gbit[tail, head]
        received = gbit * self.received_s_per_gbit[tail, head]
        out, into = (gbit * cap[tail, head] for cap in self.cap_s_per_gbit)
        code = len(KINDS) * n + tail * n + head
        codes = np.array([tail, n + tail, 2 * n + head, code, code + n * n])
        return of, self.position[codes], np.array([share, out, into, sent, received])

    def loads(self, links_gbit: Floats) -> Floats:
        """Return the VM-seconds that volumes on links, shape (n, n), need of every row."""
        of_sites = self.rows[: len(self.rows) - len(self.paths[0])]
        paths = links_gbit[self.paths] * self.path_s_per_gbit
        return np.concatenate([self.site_loads(links_gbit, self.vms).ravel()[of_sites], paths])

    def time_s(self, links_gbit: Floats) -> float:
        """Return the least time in which volumes on links can be moved, under all rows."""
        return self.time_with_s(links_gbit, self.vms)

    def paths_time_s(self, paths_gbit: Floats) -> float:
        """Return the least time of volumes by source, first hop and destination."""
        return self.as_opened(paths_gbit).time_s(links_of(paths_gbit))

    def time_with_s(self, links_gbit: Floats, vms: Floats) -> float:
        """Return the least time with other numbers of VMs, at least one a site."""
        sites = self.site_loads(links_gbit, vms) / vms
        paths = links_gbit * self.paths_s(vms)
        return float(max(sites.max(initial=0.0), paths.max(initial=0.0)))

    def vms_for(self, links_gbit: Floats, time_s: float) -> Floats:
        """Return the VMs, in fractions, that each site needs to move volumes in a time."""
        sent, received = (links_gbit * self._pair_s_per_gbit, links_gbit * self.received_s_per_gbit)
        of_sites = self.site_loads(links_gbit, np.zeros(self.count)).max(axis=0)
        most = np.maximum(of_sites, np.maximum(sent.max(axis=1), received.max(axis=0)))
        # A site that receives may have no limit at all: some part of a VM it needs all the same.
        takes_part = (links_gbit > 0).any(axis=0) | (links_gbit > 0).any(axis=1)
        return np.asarray(np.maximum(most / time_s, np.where(takes_part, SAME, 0.0)))

    def bounds_s(
        self, links_gbit: Floats, vms: Floats, low: SiteResources, high: SiteResources
    ) -> tuple[float, float]:
        """Return the times that volumes on links, (n, n), need at estimates' high and low bounds.

        What links take of a VM's connections is a sum over them, and as their errors are
        independent, they add up in squares. Caps and paths are all at their bounds. Where links may
        have slow connections, the greater time is at least the one if they have. `vms` are those in
        use, length n; `low` and `high` are the same sites at the bounds.
        """
        share, used = links_gbit * self.connections_s_per_gbit, np.maximum(vms, 1.0)
        times = []
        for bound, sign in ((high, -1.0), (low, 1.0)):
            with np.errstate(divide="ignore", invalid="ignore"):
                other = np.where(links_gbit > 0, links_gbit / bound.connections_gbps, 0.0)
                gone = (links_gbit > 0) & (bound.rate_gbps <= 0)
                paths = np.where(gone, np.inf, links_gbit * bound.paths_s(used))
            caps_out, caps_in = bound.site_loads(links_gbit, used)[1:]
            load = share.sum(axis=1) + sign * np.sqrt(((other - share) ** 2).sum(axis=1))
            of_sites = (float((each / used).max()) for each in (load, caps_out, caps_in))
            times.append(max(float(paths.max()), *of_sites))
        if self.slow_gbps is not None and self.slow_probability is not None:
            probable = self.slow_probability > 1 - LIKELY
            with np.errstate(divide="ignore", invalid="ignore"):
                slow = np.where(probable & (links_gbit > 0), links_gbit / self.slow_gbps, 0.0)
            share = np.maximum(share, slow)
            times[1] = max(times[1], float((share.sum(axis=1) / used).max()))
        return times[0], times[1]

    def with_vm_at(self, *sites: int) -> SiteResources:
        """Return the same with one more VM at each of some sites."""
        vms = self.vms.copy()
        vms[list(sites)] += 1
        return replace(self, vms=vms)

    def sites_to_widen(self, row: Row) -> tuple[int, ...]:
        """Return the sites that need a VM more for a row to carry more: of a path, maybe both."""
        if row.link:
            src, dst = row.link
            sent, received = self.s_per_gbit[src, dst], self.received_s_per_gbit[src, dst]
            if sent / self.vms[src] == received / self.vms[dst]:
                return row.link
        return (row.site,)


def _inverse(rate_gbps: Floats) -> Floats:
    return np.divide(1.0, rate_gbps, out=np.zeros_like(rate_gbps), where=rate_gbps > 0)


def links_of_paths(
    src: Integers, hop: Integers, dst: Integers
) -> tuple[Integers, Integers, Integers]:
    """Return tail, head and path of the links of paths: first all first ones."""
    (relayed,) = np.nonzero(hop != dst)
    tail, head = np.append(src, hop[relayed]), np.append(hop, dst[relayed])
    return tail, head, np.append(np.arange(len(src)), relayed)


def links_of(paths_gbit: Floats) -> Floats:
    """Return the volume on every link, shape (n, n), of volumes on one-hop paths.

    Paths are by source, first hop and destination; direct where the first hop is the destination.
    """
    links = np.array(paths_gbit.sum(axis=2))
    second = paths_gbit.sum(axis=0)
    np.fill_diagonal(second, 0.0)  # the first hop was the destination already
    return np.asarray(links + second)

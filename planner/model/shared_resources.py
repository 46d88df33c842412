"""Resources that transfers share: caps and connections of VMs at sites, and paths with limits.

Many transfers at once meet at sites, where VMs have caps and connections, and on links whose paths
end somewhere. For link flows ``X_uv`` in Gbit/s, ``n_v`` VMs at a site with ``K`` connections each,
``f_uv`` what one connection reaches over a link, ``P_uv`` what one VM pair reaches over it, and
caps ``E_u``, ``I_v`` of one VM::

    connections out   sum_v X_uv / (K f_uv) <= n_u      egress cap    sum_v X_uv / E_u <= n_u
    connections in    sum_u X_uv / (K f_uv) <= n_v      ingress cap   sum_u X_uv / I_v <= n_v
    path              X_uv / P_uv <= n_u,   X_uv / P_uv <= n_v

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

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.throughput import LIKELY

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

KINDS = ("connections out", "connections in", "egress cap", "ingress cap")
"""Of the rows that a site has one of each."""
PATH = "path"
ONE: Floats = np.ones((1, 1))


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

    Attributes
    ----------
    rate_gbps : array, shape (n, n)
        ``P``: what one VM pair reaches, row to column; 0 where there is no link.
    connections_gbps : array, shape (n, n)
        ``K f``: what all connections of one VM would carry, were they all there is.
    egress_gbps, ingress_gbps : arrays, length n
        Caps of one VM, for all it sends and receives.
    path_rows : array, optional
        Codes of the paths' rows that are among :attr:`rows`; all that can bind by default. There
        are up to 2 n^2 and few bind: who adds them as they are broken begins with none.
    egress_weights, ingress_weights : arrays, shape (n, n), or 1
        How often a flow counts against these caps: more than once over a kind of address whose cap
        is lower.
    slow_gbps, slow_probability : arrays, shape (n, n), or None
        What all connections of one VM would carry if each of a link's is slow, infinity where that
        is not in doubt, and its probability; see :mod:`planner.transfer.readings`.
    """

    rate_gbps: Floats
    connections_gbps: Floats
    egress_gbps: Floats
    ingress_gbps: Floats
    vms: Floats
    may_relay: NDArray[np.bool_]
    path_rows: Integers | None = None
    egress_weights: Floats = field(default_factory=lambda: ONE)
    ingress_weights: Floats = field(default_factory=lambda: ONE)
    slow_gbps: Floats | None = None
    slow_probability: Floats | None = None

    @property
    def count(self) -> int:
        """Number of sites."""
        return len(self.rate_gbps)

    @cached_property
    def s_per_gbit(self) -> Floats:
        """Time that one VM pair needs for a Gbit, shape (n, n); 0 where there is no link."""
        return _inverse(self.rate_gbps)

    @cached_property
    def connections_s_per_gbit(self) -> Floats:
        """VM-seconds of connections that a Gbit takes, shape (n, n); 0 where there is no link."""
        return np.where(self.rate_gbps > 0, _inverse(self.connections_gbps), 0.0)

    @cached_property
    def cap_s_per_gbit(self) -> tuple[Floats, Floats]:
        """VM-seconds of egress and ingress caps that a Gbit takes, shape (n, n); 0 without caps."""
        square = (self.count, self.count)
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.nan_to_num(self.egress_weights / self.egress_gbps[:, None], posinf=0.0)
            into = np.nan_to_num(self.ingress_weights / self.ingress_gbps, posinf=0.0)
        return np.broadcast_to(out, square), np.broadcast_to(into, square)

    def weighed(self, links_gbit: Floats) -> tuple[Floats, Floats]:
        """Return the volumes that count against the caps of each site: sent, and received."""
        out = (links_gbit * self.egress_weights).sum(axis=1)
        return out, (links_gbit * self.ingress_weights).sum(axis=0)

    @cached_property
    def pair_vms(self) -> Floats:
        """VM pairs of each link that can be used side by side, shape (n, n)."""
        return np.minimum(self.vms[:, None], self.vms[None, :])

    @cached_property
    def vm_gbps(self) -> tuple[Floats, Floats]:
        """The most that one VM of each site can send, and receive, over all links together."""
        rates, connections = self.rate_gbps, np.where(self.rate_gbps > 0, self.connections_gbps, 0)
        caps = self.egress_gbps, self.ingress_gbps
        out, into = (
            np.minimum(np.minimum(cap, rates.sum(axis=axis)), connections.max(axis, initial=0.0))
            for cap, axis in zip(caps, (1, 0), strict=True)
        )
        return out, into

    @cached_property
    def rows(self) -> Integers:
        """Codes of the rows that can bind: those of sites, then :attr:`path_rows`.

        Where all paths of a site together are slower than its cap, the cap can't bind; where even
        its slowest connections together are faster than its paths or its cap, connections can't.
        """
        binding = []
        for cap, weights, axis in (
            (self.egress_gbps, self.egress_weights, 1),
            (self.ingress_gbps, self.ingress_weights, 0),
        ):
            paths = (self.rate_gbps * weights).sum(axis=axis)
            slowest = np.where(self.rate_gbps > 0, self.connections_gbps, np.inf)
            slowest = slowest.min(axis, initial=np.inf)
            binding.append(((paths > 0) & (slowest <= paths) & (slowest < cap), paths >= cap))
        (out, cap_out), (into, cap_in) = binding
        used = np.concatenate([out, into, cap_out, cap_in])
        paths = self._binding_paths() if self.path_rows is None else self.path_rows
        return np.concatenate([np.nonzero(used)[0], paths]).astype(np.int64)

    def _binding_paths(self) -> Integers:
        """Return the codes of all path rows that can bind: below cap and connections of the VM."""
        rate = self.rate_gbps
        slower = (rate > 0) & (rate < self.connections_gbps)
        out = np.nonzero(slower & (rate < self.egress_gbps[:, None]))
        into = np.nonzero(slower & (rate < self.ingress_gbps))
        return np.concatenate([self._path_code(*out, out=True), self._path_code(*into, out=False)])

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

        Of a path's two rows, the one of the end with fewer VMs: the other never needs longer.
        """
        src, dst = np.nonzero(links_gbit * self.s_per_gbit > time_s * self.pair_vms)
        out = self.vms[src] <= self.vms[dst]
        caps = np.minimum((self.egress_gbps * self.vms)[src], (self.ingress_gbps * self.vms)[dst])
        caps = caps / self.pair_vms[src, dst]
        binds = self.rate_gbps[src, dst] < np.minimum(caps, self.connections_gbps[src, dst])
        return self._path_code(src[binds], dst[binds], out=out[binds])

    @cached_property
    def with_fixed_vms(self) -> SiteResources:
        """The same with one row a path, enough where no VM is added: of the end with fewer VMs."""
        return self.with_path_rows(self.path_rows_above(np.ones_like(self.rate_gbps), 0.0))

    @cached_property
    def paths(self) -> tuple[Integers, Integers]:
        """Source and destination of all rows of paths in :attr:`rows`; they come last."""
        n = self.count
        codes = (self.rows[self.rows >= len(KINDS) * n] - len(KINDS) * n) % (n * n)
        return codes // n, codes % n

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
            return Row(KINDS[code // n], code % n, None)
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
    def _plain(
        self,
    ) -> tuple[
        list[int], list[list[float]], list[list[float]], list[list[float]], list[list[float]]
    ]:
        """Arrays for :meth:`link_rows`, as lists: many times faster element by element."""
        return (
            self.position.tolist(),
            self.connections_s_per_gbit.tolist(),
            self.s_per_gbit.tolist(),
            self.cap_s_per_gbit[0].tolist(),
            self.cap_s_per_gbit[1].tolist(),
        )

    def link_rows(self, src: int, dst: int) -> list[tuple[int, float]]:
        """Return the rows that a link loads, with the VM-seconds that a Gbit needs of each."""
        n = self.count
        position, connections, paths, egress, ingress = self._plain
        path = len(KINDS) * n + src * n + dst
        needs = (
            (position[src], connections[src][dst]),
            (position[n + dst], connections[src][dst]),
            (position[2 * n + src], egress[src][dst]),
            (position[3 * n + dst], ingress[src][dst]),
            (position[path], paths[src][dst]),
            (position[path + n * n], paths[src][dst]),
        )
        return [(row, need) for row, need in needs if row < len(self.rows)]

    def link_prices(self, row_prices: Floats) -> Floats:
        """Return the price of a Gbit on every link at prices per VM-second, shape (n, n).

        Infinite where there is no link.
        """
        n = self.count
        whole = np.zeros(len(KINDS) * n)
        of_sites = len(row_prices) - len(self.paths[0])
        whole[self.rows[:of_sites]] = row_prices[:of_sites]
        prices = (whole[:n, None] + whole[None, n : 2 * n]) * self.connections_s_per_gbit
        egress, ingress = whole[2 * n : 3 * n, None], whole[3 * n :]
        prices += np.where(egress > 0, egress * self.cap_s_per_gbit[0], 0.0)
        prices += np.where(ingress > 0, ingress * self.cap_s_per_gbit[1], 0.0)
        if len(row_prices) > of_sites:
            np.add.at(prices, self.paths, row_prices[of_sites:] * self.s_per_gbit[self.paths])
        prices[self.rate_gbps <= 0] = np.inf
        return prices

    def _site_loads(self, links_gbit: Floats) -> Floats:
        """Return the loads of the rows of sites, shape (4, n)."""
        shares = links_gbit * self.connections_s_per_gbit
        out, into = self.weighed(links_gbit)
        with np.errstate(divide="ignore", invalid="ignore"):
            caps_out = np.nan_to_num(out / self.egress_gbps, posinf=0.0)
            caps_in = np.nan_to_num(into / self.ingress_gbps, posinf=0.0)
        return np.array([shares.sum(axis=1), shares.sum(axis=0), caps_out, caps_in])

    def loads(self, links_gbit: Floats) -> Floats:
        """Return the VM-seconds that volumes on links, shape (n, n), need of every row."""
        of_sites = self.rows[: len(self.rows) - len(self.paths[0])]
        paths = links_gbit[self.paths] * self.s_per_gbit[self.paths]
        return np.concatenate([self._site_loads(links_gbit).ravel()[of_sites], paths])

    def time_s(self, links_gbit: Floats) -> float:
        """Return the least time in which volumes on links can be moved, under all rows."""
        return self.time_with_s(links_gbit, self.vms)

    def time_with_s(self, links_gbit: Floats, vms: Floats) -> float:
        """Return the least time with other numbers of VMs, at least one a site."""
        sites = self._site_loads(links_gbit) / vms
        paths = links_gbit * self.s_per_gbit / np.minimum(vms[:, None], vms[None, :])
        return float(max(sites.max(initial=0.0), paths.max(initial=0.0)))

    def vms_for(self, links_gbit: Floats, time_s: float) -> Floats:
        """Return the VMs, in fractions, that each site needs to move volumes in a time."""
        paths = links_gbit * self.s_per_gbit
        of_sites = self._site_loads(links_gbit).max(axis=0)
        most = np.maximum(of_sites, np.maximum(paths.max(axis=1), paths.max(axis=0)))
        return np.asarray(most / time_s)

    def bounds_s(
        self, links_gbit: Floats, vms: Floats, low: SiteResources, high: SiteResources
    ) -> tuple[float, float]:
        """Return the times that volumes on links need at the estimates' high and low bounds.

        What links take of a VM's connections is a sum over them, and as their errors are
        independent, they add up in squares. Caps and paths are all at their bounds. Where links
        may have slow connections, the greater time is at least the one if they have.

        Parameters
        ----------
        links_gbit : array, shape (n, n)
        vms : array, length n
            Those in use.
        low, high : SiteResources
            The same sites at the bounds of the estimates.
        """
        share, used = links_gbit * self.connections_s_per_gbit, np.maximum(vms, 1.0)
        pairs = np.minimum(used[:, None], used[None, :])
        times = []
        for bound, sign in ((high, -1.0), (low, 1.0)):
            with np.errstate(divide="ignore", invalid="ignore"):
                other = np.where(links_gbit > 0, links_gbit / bound.connections_gbps, 0.0)
                paths = np.where(links_gbit > 0, links_gbit / bound.rate_gbps, 0.0) / pairs
                out, into = bound.weighed(links_gbit)
                caps_out = np.nan_to_num(out / bound.egress_gbps, posinf=np.inf)
                caps_in = np.nan_to_num(into / bound.ingress_gbps, posinf=np.inf)
            errors = [np.sqrt(((other - share) ** 2).sum(axis=axis)) for axis in (1, 0)]
            loads = [share.sum(axis=axis) + sign * errors[1 - axis] for axis in (1, 0)]
            of_sites = (float((load / used).max()) for load in (*loads, caps_out, caps_in))
            times.append(max(float(paths.max()), *of_sites))
        if self.slow_gbps is not None and self.slow_probability is not None:
            probable = self.slow_probability > 1 - LIKELY
            share = np.maximum(share, np.where(probable, links_gbit / self.slow_gbps, 0.0))
            slow_s = (share.sum(axis=axis) / used for axis in (1, 0))
            times[1] = max(times[1], *(float(of_sites.max()) for of_sites in slow_s))
        return times[0], times[1]

    def with_vm_at(self, *sites: int) -> SiteResources:
        """Return the same with one more VM at each of some sites."""
        vms = self.vms.copy()
        vms[list(sites)] += 1
        return replace(self, vms=vms)

    def sites_to_widen(self, row: Row) -> tuple[int, ...]:
        """Return the sites that need a VM more for a row to carry more: of a path, mostly both."""
        if row.link and self.vms[row.link[0]] == self.vms[row.link[1]]:
            return row.link
        return (row.site,)


def _inverse(rate_gbps: Floats) -> Floats:
    return np.divide(1.0, rate_gbps, out=np.zeros_like(rate_gbps), where=rate_gbps > 0)


def links_of(paths_gbit: Floats) -> Floats:
    """Return the volume on every link, shape (n, n), of volumes on one-hop paths.

    Paths are by source, first hop and destination; direct where the first hop is the destination.
    """
    links = np.array(paths_gbit.sum(axis=2))
    second = paths_gbit.sum(axis=0)
    np.fill_diagonal(second, 0.0)  # the first hop was the destination already
    return np.asarray(links + second)

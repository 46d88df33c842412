"""What transfers share: the caps and connection budgets of the VMs of each site.

Many transfers at once meet only at sites. For link flows ``X_uv`` in Gbit/s, ``n_v`` VMs at a site,
``A_uv`` the rate of one VM pair with all its connections, and caps ``E_u``, ``I_v`` of one VM::

    connections out   sum_v X_uv / A_uv <= n_u        egress cap    sum_v X_uv / E_u <= n_u
    connections in    sum_u X_uv / A_uv <= n_v        ingress cap   sum_u X_uv / I_v <= n_v

Each row is in VMs. Volumes (Gbit) in place of flows make it VM-seconds: the *load* of a row, which
over its VMs is the time that the row needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

KINDS = ("connections out", "connections in", "egress cap", "ingress cap")


@dataclass(frozen=True)
class SiteResources:
    """Rates, caps and VMs of n sites.

    Attributes
    ----------
    rate_gbps : array, shape (n, n)
        Of one VM pair with all its connections, row to column; 0 where there is no link.
    egress_gbps, ingress_gbps : arrays, length n
        Caps of one VM.
    vms : array, length n
    may_relay : array of bool, length n
    """

    rate_gbps: Floats
    egress_gbps: Floats
    ingress_gbps: Floats
    vms: Floats
    may_relay: NDArray[np.bool_]

    @property
    def count(self) -> int:
        """Number of sites."""
        return len(self.rate_gbps)

    @cached_property
    def s_per_gbit(self) -> Floats:
        """Time that one VM pair needs for a Gbit, shape (n, n); 0 where there is no link."""
        known = self.rate_gbps > 0
        return np.divide(1.0, self.rate_gbps, out=np.zeros_like(self.rate_gbps), where=known)

    @cached_property
    def rows(self) -> Integers:
        """Positions of the rows that can bind, among all rows by kind and site.

        Where no link out of a site is faster than its cap, connections run out first.
        """
        n = self.count
        fastest_out = self.rate_gbps.max(axis=1, initial=0.0)
        fastest_in = self.rate_gbps.max(axis=0, initial=0.0)
        used = np.concatenate(
            [
                fastest_out > 0,
                fastest_in > 0,
                fastest_out > self.egress_gbps,
                fastest_in > self.ingress_gbps,
            ]
        )
        assert len(used) == len(KINDS) * n
        return np.nonzero(used)[0]

    @cached_property
    def row_vms(self) -> Floats:
        """VMs of each row's site."""
        return self.vms[self.rows % self.count]

    def row(self, position: int) -> tuple[str, int]:
        """Return what a row is: its kind and its site."""
        whole = int(self.rows[position])
        return KINDS[whole // self.count], whole % self.count

    @cached_property
    def position(self) -> Integers:
        """Position in :attr:`rows` of every row by kind and site; past the end for the rest."""
        found = np.full(len(KINDS) * self.count, len(self.rows))
        found[self.rows] = np.arange(len(self.rows))
        return found

    @cached_property
    def _plain(self) -> tuple[list[int], list[list[float]], list[float], list[float]]:
        """What :meth:`link_rows` reads, as lists: many times faster element by element."""
        return (
            self.position.tolist(),
            self.s_per_gbit.tolist(),
            self.egress_gbps.tolist(),
            self.ingress_gbps.tolist(),
        )

    def link_rows(self, src: int, dst: int) -> list[tuple[int, float]]:
        """Return the rows that a link loads, with the VM-seconds that a Gbit needs of each."""
        n, (position, inverse, egress, ingress) = self.count, self._plain
        needs = (
            (position[src], inverse[src][dst]),
            (position[n + dst], inverse[src][dst]),
            (position[2 * n + src], 1 / egress[src]),
            (position[3 * n + dst], 1 / ingress[dst]),
        )
        return [(row, need) for row, need in needs if row < len(self.rows)]

    def link_prices(self, row_prices: Floats) -> Floats:
        """Return what a Gbit costs on every link at prices per VM-second, shape (n, n).

        Infinite where there is no link.
        """
        n = self.count
        whole = np.zeros(len(KINDS) * n)
        whole[self.rows] = row_prices
        prices = (whole[:n, None] + whole[None, n : 2 * n]) * self.s_per_gbit
        if len(self.rows) > 2 * n or whole[2 * n :].any():
            with np.errstate(divide="ignore", invalid="ignore"):
                prices += np.where(
                    whole[2 * n : 3 * n] > 0, whole[2 * n : 3 * n] / self.egress_gbps, 0.0
                )[:, None]
                prices += np.where(whole[3 * n :] > 0, whole[3 * n :] / self.ingress_gbps, 0.0)
        prices[self.rate_gbps <= 0] = np.inf
        return prices

    def loads(self, links_gbit: Floats) -> Floats:
        """Return the VM-seconds that volumes on links, shape (n, n), need of every row."""
        shares = links_gbit * self.s_per_gbit
        with np.errstate(divide="ignore", invalid="ignore"):
            caps_out = np.nan_to_num(links_gbit.sum(axis=1) / self.egress_gbps, posinf=0.0)
            caps_in = np.nan_to_num(links_gbit.sum(axis=0) / self.ingress_gbps, posinf=0.0)
        whole = np.concatenate([shares.sum(axis=1), shares.sum(axis=0), caps_out, caps_in])
        return np.asarray(whole[self.rows])

    def time_s(self, links_gbit: Floats) -> float:
        """Return the least time in which volumes on links can be moved."""
        return float((self.loads(links_gbit) / self.row_vms).max(initial=0.0))

    def bounds_s(
        self, links_gbit: Floats, vms: Floats, low: SiteResources, high: SiteResources
    ) -> tuple[float, float]:
        """Return the times that volumes on links need at the estimates' high and low bounds.

        Errors of links are independent: a VM's load is a sum over its links, and the errors of a
        sum add up in squares. Caps are all at their bound.

        Parameters
        ----------
        links_gbit : array, shape (n, n)
        vms : array, length n
            Those in use.
        low, high : SiteResources
            The same sites at the bounds of the estimates.
        """
        share, used = links_gbit * self.s_per_gbit, np.maximum(vms, 1.0)
        times = []
        for bound, sign in ((high, -1.0), (low, 1.0)):
            with np.errstate(divide="ignore", invalid="ignore"):
                other = np.where(links_gbit > 0, links_gbit / bound.rate_gbps, 0.0)
                caps_out = np.nan_to_num(links_gbit.sum(axis=1) / bound.egress_gbps, posinf=np.inf)
                caps_in = np.nan_to_num(links_gbit.sum(axis=0) / bound.ingress_gbps, posinf=np.inf)
            errors = [np.sqrt(((other - share) ** 2).sum(axis=axis)) for axis in (1, 0)]
            loads = [share.sum(axis=axis) + sign * errors[1 - axis] for axis in (1, 0)]
            times.append(max(float((load / used).max()) for load in (*loads, caps_out, caps_in)))
        return times[0], times[1]

    def with_vm_at(self, site: int) -> SiteResources:
        """Return the same with one more VM at a site."""
        vms = self.vms.copy()
        vms[site] += 1
        return replace(self, vms=vms)


def links_of(paths_gbit: Floats) -> Floats:
    """Return the volume on every link, shape (n, n), of volumes on one-hop paths.

    Parameters
    ----------
    paths_gbit : array, shape (n, n, n)
        By source, first hop and destination; direct where the first hop is the destination.
    """
    links = np.array(paths_gbit.sum(axis=2))
    second = paths_gbit.sum(axis=0)
    np.fill_diagonal(second, 0.0)  # the first hop was the destination already
    return np.asarray(links + second)

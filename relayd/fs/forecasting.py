"""What a copy through one machine costs and takes, before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.transfer.plan import Plan
from relayd.sources.wan import Wan

if TYPE_CHECKING:
    from relayd.client.blocking import RemoteWan

STORES_DIFFER = (
    "These are rates between VMs: an object store, or this machine's disk, may be slower."
)


@dataclass(frozen=True, slots=True)
class CopyForecast:
    """What a copy will cost and take.

    Attributes
    ----------
    files : int
    volume_gb : float
    links : tuple of Plan
        Of the links that the data takes, source to this machine and on; none within one region.
    egress_usd : float
        Of all links together.
    throughput_gbps, throughput_gbps_low, throughput_gbps_high : float | None
        Of the slowest link; None within one region, where nothing is known of it.
    duration_s : float | None
        Of the slowest link, as data passes through this machine while it arrives.
    """

    files: int
    volume_gb: float
    links: tuple[Plan, ...]
    egress_usd: float
    throughput_gbps: float | None
    throughput_gbps_low: float | None
    throughput_gbps_high: float | None
    duration_s: float | None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know of the figures."""
        return (
            *dict.fromkeys(text for plan in self.links for text in plan.warnings),
            STORES_DIFFER,
        )

    def __str__(self) -> str:
        """Say price and time in a sentence."""
        what = f"{self.files:,} file{'s' if self.files != 1 else ''}, {volume_text(self.volume_gb)}"
        if self.duration_s is None:
            return f"{what} within one region: no egress fee, and no forecast of the time."
        route = " and on ".join(
            f"{plan.paths[0].regions[0]} -> {plan.paths[0].regions[-1]}" for plan in self.links
        )
        low, high = self.throughput_gbps_low or 0.0, self.throughput_gbps_high or 0.0
        return (
            f"{what}, {route}: {usd_text(self.egress_usd)} USD of egress fees, "
            f"{duration_text(self.duration_s)} at {gbps_text(self.throughput_gbps or 0.0)} Gbit/s "
            f"({gbps_text(low)} to {gbps_text(high)})."
        )


def forecast_of(
    wan: Wan | RemoteWan, files: int, volume_gb: float, regions: tuple[str, ...], streams: int
) -> CopyForecast:
    """Return what data costs and takes that passes through regions one after the other.

    Parameters
    ----------
    regions : tuple of str
        Ids or aliases; the same one twice in a row is no link.
    streams : int
        Files that are copied at a time, each over one connection.

    Raises
    ------
    RelaydError
        If nothing is known of a link, or its price.
    """
    plans = tuple(
        wan.plan(src, dst, volume_gb=volume_gb, relays="none", vms=1, connections=streams)
        for src, dst in pairwise(regions)
        if src != dst and volume_gb > 0
    )
    slowest = min(plans, key=lambda plan: plan.throughput_gbps, default=None)
    return CopyForecast(
        files,
        volume_gb,
        plans,
        sum(plan.cost_usd.egress for plan in plans),
        slowest.throughput_gbps if slowest else None,
        min((plan.throughput_gbps_low for plan in plans), default=None),
        min((plan.throughput_gbps_high for plan in plans), default=None),
        max((plan.duration_s for plan in plans), default=None),
    )

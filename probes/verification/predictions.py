"""What a plan predicts, as a whole and for each path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from planner.model.errors import InputError
from planner.model.units import MBPS_PER_GBPS
from planner.model.verification import MEASURING_ERROR

Question: TypeAlias = Literal["transfer", "shuffle", "broadcast"]


@dataclass(frozen=True, slots=True)
class RateRange:
    """A steady throughput in Gbit/s that is expected, with bounds."""

    low_gbps: float
    expected_gbps: float
    high_gbps: float

    def scaled(self, share: float) -> RateRange:
        """Return the range scaled to a part of it."""
        return RateRange(self.low_gbps * share, self.expected_gbps * share, self.high_gbps * share)

    def of_one_run(self) -> RateRange:
        """Return the bounds within which one measurement should fall.

        Bounds of estimates hold a measurement's own error already; no bounds are closer than that.
        """
        most = 1 + MEASURING_ERROR
        return RateRange(
            min(self.low_gbps, self.expected_gbps / most),
            self.expected_gbps,
            max(self.high_gbps, self.expected_gbps * most),
        )

    def __contains__(self, gbps: object) -> bool:
        """Whether a throughput lies within the bounds."""
        return isinstance(gbps, float) and self.low_gbps <= gbps <= self.high_gbps


def total(rates: Iterable[RateRange]) -> RateRange:
    """Return the range of rates together, all of them low or high at once."""
    lows, expected, highs = zip(
        *((rate.low_gbps, rate.expected_gbps, rate.high_gbps) for rate in rates), strict=True
    )
    return RateRange(sum(lows), sum(expected), sum(highs))


@dataclass(frozen=True, slots=True)
class PathPrediction:
    """One path of a plan, or one link of a broadcast's trees.

    Attributes
    ----------
    regions : tuple of str
        Two for direct, three through a relay.
    connections : int
        On each link, over all VMs.
    rtt_ms : float
        Of all links together.
    rate : RateRange
    """

    regions: tuple[str, ...]
    connections: int
    rtt_ms: float
    rate: RateRange


@dataclass(frozen=True, slots=True)
class PlanPrediction:
    """What a plan predicts, to be verified: paths that carry so much at the same time.

    Attributes
    ----------
    plan_id, snapshot_id, src, dst, verdict : str
        A shuffle has no ``src`` and ``dst``, a broadcast no ``dst``: they are empty.
    paths : tuple of PathPrediction
    vms : dict
        Region to number of VMs.
    rate : RateRange
        Of all paths together.
    share : float
        Of the plan's VMs that this is for; rates and connections are in proportion.
    question : {"transfer", "shuffle", "broadcast"}
        What the plan answers.
    """

    plan_id: str
    snapshot_id: str
    src: str
    dst: str
    verdict: str
    paths: tuple[PathPrediction, ...]
    vms: dict[str, int]
    rate: RateRange
    share: float = 1.0
    question: Question = "transfer"

    @property
    def sets_rates(self) -> bool:
        """Whether paths are to keep to their rates, which leave room for each other.

        A transfer has VMs of its own: its rate is the most that they carry.
        """
        return self.question != "transfer"

    @property
    def title(self) -> str:
        """What the plan is of, for messages."""
        if self.question == "shuffle":
            pairs = {(path.regions[0], path.regions[-1]) for path in self.paths}
            return f"shuffle of {len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}"
        if self.question == "broadcast":
            return f"broadcast from {self.src}"
        return f"{self.src} -> {self.dst}"

    def at_least(self, gbps: float) -> PlanPrediction:
        """Return the prediction without the paths that carry less.

        Raises
        ------
        InputError
            If all do.
        """
        paths = tuple(path for path in self.paths if path.rate.expected_gbps >= gbps)
        if len(paths) == len(self.paths):
            return self
        if not paths:
            raise InputError("plan", f"has no path of {gbps * MBPS_PER_GBPS:g} Mbit/s or more")
        return replace(self, paths=paths, rate=total(path.rate for path in paths))

    def with_vms(self, available: Mapping[str, int]) -> PlanPrediction:
        """Return the prediction for the VMs that there are, at most those planned.

        All rates are linear in the numbers of VMs, so the region with the smallest part of its
        VMs decides.

        Raises
        ------
        InputError
            If a region of the plan has no VM at all.
        """
        for region in self.vms:
            if not available.get(region):
                raise InputError(
                    "plan",
                    f"needs a VM in {region}, where the fleet has none",
                    remedy="Add a host there to the fleet file, or plan with the regions that it "
                    "has: `relayd verify` does.",
                )
        share = min(min(1.0, available[region] / count) for region, count in self.vms.items())
        if share == 1.0:
            return self
        vms = {region: min(available[region], count) for region, count in self.vms.items()}
        paths = tuple(
            replace(
                path,
                rate=path.rate.scaled(share),
                connections=max(1, round(path.connections * share)),
            )
            for path in self.paths
        )
        return replace(self, paths=paths, vms=vms, rate=self.rate.scaled(share), share=share)

"""What a plan predicts, as a whole and for each path, read from its JSON document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from typing import Any

from planner.model.errors import InputError

MEASURING_ERROR = 0.05
"""Relative error of one measurement with many connections, 90th percentile on the January 2022
grid: bounds of what one run shows are no closer than that."""


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

        The estimate's error and the measurement's own are independent.
        """
        expected = self.expected_gbps
        if expected <= 0:
            return self
        below = (
            sqrt((expected / self.low_gbps - 1) ** 2 + MEASURING_ERROR**2)
            if (self.low_gbps > 0)
            else None
        )
        above = sqrt((self.high_gbps / expected - 1) ** 2 + MEASURING_ERROR**2)
        low_gbps = 0.0 if below is None else expected / (1 + below)
        return RateRange(low_gbps, expected, expected * (1 + above))

    def __contains__(self, gbps: object) -> bool:
        """Whether a throughput lies within the bounds."""
        return isinstance(gbps, float) and self.low_gbps <= gbps <= self.high_gbps


@dataclass(frozen=True, slots=True)
class PathPrediction:
    """One path of a plan.

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
    """What a plan predicts, to be verified.

    Attributes
    ----------
    plan_id, snapshot_id, src, dst, verdict : str
    paths : tuple of PathPrediction
    vms : dict
        Region to number of VMs.
    rate : RateRange
        Of all paths together.
    share : float
        Of the plan's VMs that this is for; rates and connections are in proportion.
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


def predicted(plan: Mapping[str, Any]) -> PlanPrediction:
    """Return what the document of a transfer's plan predicts.

    Raises
    ------
    InputError
        If it is no such document.
    """
    try:
        whole = RateRange(
            _rate(plan, "throughput_gbps_low"),
            _rate(plan, "throughput_gbps"),
            _rate(plan, "throughput_gbps_high"),
        )
        request = plan["request"]
        paths = tuple(
            PathPrediction(
                tuple(str(name) for name in path["regions"]),
                int(path["connections"]),
                float(path["rtt_ms"]),
                whole.scaled(_rate(path, "throughput_gbps") / whole.expected_gbps),
            )
            for path in plan["paths"]
        )
        found = PlanPrediction(
            str(plan["plan_id"]),
            str(plan["snapshot"]["id"]),
            str(request["src"]),
            str(request["dst"]),
            str(plan["verdict"]),
            paths,
            {str(region): int(count) for region, count in plan["vms"].items()},
            whole,
        )
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as fault:
        raise InputError(
            "plan",
            f"is not the plan of a transfer: {type(fault).__name__} {fault}",
            remedy="Give a plan or its JSON.",
        ) from None
    _check(found)
    return found


def _rate(content: Mapping[str, Any], name: str) -> float:
    gbps = float(content[name])
    if not (isfinite(gbps) and gbps >= 0):
        raise ValueError(f"{name} is {gbps}")
    return gbps


def _check(found: PlanPrediction) -> None:
    """Refuse a document that contradicts itself, as one that was edited by hand may."""
    rate = found.rate
    if not (rate.expected_gbps > 0 and rate.low_gbps <= rate.expected_gbps <= rate.high_gbps):
        raise InputError("plan", "has a throughput outside of its bounds", value=rate.expected_gbps)
    if not found.paths:
        raise InputError("plan", "has no path")
    for path in found.paths:
        ends = (path.regions[:1], path.regions[-1:])
        count = len(path.regions)
        if (
            count not in (2, 3)
            or len(set(path.regions)) < count
            or ends != ((found.src,), (found.dst,))
        ):
            raise InputError(
                "plan",
                f"has a path that does not lead from {found.src} to {found.dst} over at "
                "most one relay",
                value=" -> ".join(path.regions),
            )
        if path.connections < 1 or not 0 <= path.rtt_ms < float("inf"):
            raise InputError("plan", "has a path without connections or round-trip time")
        if missing := [name for name in path.regions if found.vms.get(name, 0) < 1]:
            raise InputError("plan", f"has no VM in {missing[0]}, which is on a path")
    if len({path.regions for path in found.paths}) < len(found.paths):
        raise InputError("plan", "has a path twice")

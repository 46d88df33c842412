"""Plans of transfers, shuffles and broadcasts, read from their JSON documents as predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from math import isfinite
from typing import Any, TypeAlias

from planner.model.errors import InputError
from probes.verification.predictions import (
    PathPrediction,
    PlanPrediction,
    Question,
    RateRange,
    total,
)

RttMs: TypeAlias = Callable[[str, str], float]
"""Round-trip time of a link, by its source and destination."""
ROUNDED_DOWN = 1 - 1e-9
"""Sums of figures that are equal differ by less."""


def predicted(plan: Mapping[str, Any], rtt_ms: RttMs) -> PlanPrediction:
    """Return what the document of a transfer's, a shuffle's or a broadcast's plan predicts.

    Parameters
    ----------
    plan : mapping
    rtt_ms : callable
        Of links, for plans that do not state it.

    Raises
    ------
    InputError
        If it is no such document.
    """
    read = _of_shuffle if "pairs" in plan else _of_broadcast if "trees" in plan else _of_transfer
    try:
        found = read(plan, rtt_ms)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as fault:
        raise InputError(
            "plan",
            f"is not the plan of a transfer, shuffle or broadcast: {type(fault).__name__} {fault}",
            remedy="Give a plan or its JSON.",
        ) from None
    _check(found)
    return found


def _of_transfer(plan: Mapping[str, Any], _: RttMs) -> PlanPrediction:
    whole = RateRange(
        _rate(plan, "throughput_gbps_low"),
        _rate(plan, "throughput_gbps"),
        _rate(plan, "throughput_gbps_high"),
    )
    paths = (
        PathPrediction(
            _names(path["regions"]),
            int(path["connections"]),
            float(path["rtt_ms"]),
            whole.scaled(_rate(path, "throughput_gbps") / whole.expected_gbps),
        )
        for path in plan["paths"]
    )
    return _prediction(plan, "transfer", paths, whole)


def _of_shuffle(plan: Mapping[str, Any], rtt_ms: RttMs) -> PlanPrediction:
    # All rates are in proportion to the volumes: what is said of the duration holds for each.
    spread = RateRange(
        float(plan["duration_s"]) / float(plan["duration_s_high"]),
        1.0,
        float(plan["duration_s"]) / float(plan["duration_s_low"]),
    )
    paths = [
        PathPrediction(
            regions,
            int(path["connections"]),
            sum(rtt_ms(*link) for link in pairwise(regions)),
            spread.scaled(_rate(path, "throughput_gbps")),
        )
        for pair in plan["pairs"]
        for path in pair["paths"]
        for regions in [_names(path["regions"])]
    ]
    return _prediction(plan, "shuffle", paths, total(path.rate for path in paths))


def _of_broadcast(plan: Mapping[str, Any], rtt_ms: RttMs) -> PlanPrediction:
    at_each = _rate(plan, "throughput_gbps")
    spread = RateRange(
        _rate(plan, "throughput_gbps_low") / at_each,
        1.0,
        _rate(plan, "throughput_gbps_high") / at_each,
    )
    links: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for tree in plan["trees"]:
        for link in tree["legs"]:
            links.setdefault((str(link["src"]), str(link["dst"])), []).append(link)
    paths = [
        PathPrediction(
            regions,
            sum(int(link["connections"]) for link in of_trees),
            rtt_ms(*regions),
            spread.scaled(sum(_rate(link, "throughput_gbps") for link in of_trees)),
        )
        for regions, of_trees in links.items()
    ]
    return _prediction(plan, "broadcast", paths, total(path.rate for path in paths))


def _prediction(
    plan: Mapping[str, Any], question: Question, paths: Iterable[PathPrediction], rate: RateRange
) -> PlanPrediction:
    request = plan["request"]
    return PlanPrediction(
        str(plan["plan_id"]),
        str(plan["snapshot"]["id"]),
        "" if question == "shuffle" else str(request["src"]),
        str(request["dst"]) if question == "transfer" else "",
        str(plan["verdict"]),
        tuple(paths),
        {str(region): int(count) for region, count in plan["vms"].items()},
        rate,
        question=question,
    )


def _names(regions: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(name) for name in regions)


def _rate(content: Mapping[str, Any], name: str) -> float:
    gbps = float(content[name])
    if not (isfinite(gbps) and gbps >= 0):
        raise ValueError(f"{name} is {gbps}")
    return gbps


def _check(found: PlanPrediction) -> None:
    """Refuse a document that contradicts itself, as one that was edited by hand may."""
    if not found.paths:
        raise InputError("plan", "has no path")
    for rate in (found.rate, *(path.rate for path in found.paths)):
        expected = rate.expected_gbps
        is_inside = rate.low_gbps * ROUNDED_DOWN <= expected <= rate.high_gbps / ROUNDED_DOWN
        if not (expected > 0 and is_inside):
            raise InputError("plan", "has a throughput outside of its bounds", value=expected)
    for path in found.paths:
        ends = (path.regions[:1], path.regions[-1:])
        count = len(path.regions)
        of_transfer = found.question == "transfer"
        if (
            count not in (2, 3)
            or len(set(path.regions)) < count
            or (of_transfer and ends != ((found.src,), (found.dst,)))
        ):
            where = f" from {found.src} to {found.dst}" if of_transfer else ""
            raise InputError(
                "plan",
                f"has a path that does not lead{where} over at most one relay",
                value=" -> ".join(path.regions),
            )
        if path.connections < 1 or not 0 <= path.rtt_ms < float("inf"):
            raise InputError("plan", "has a path without connections or round-trip time")
        if missing := [name for name in path.regions if found.vms.get(name, 0) < 1]:
            raise InputError("plan", f"has no VM in {missing[0]}, which is on a path")
    if len({path.regions for path in found.paths}) < len(found.paths):
        raise InputError("plan", "has a path twice")

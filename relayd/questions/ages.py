"""What an answer rests on that is too old to rely on, and what renews it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from planner.fields.shared import PricedRequest
from planner.model.answer import Recommendation
from planner.model.errors import DataError
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.link import Link
from planner.model.network import Network
from relayd.times import utc_date

MOST_NAMED = 3
A = TypeVar("A", bound=Recommendation)
Pair = tuple[str, str]


def dated(answer: A, network: Network, pairs: Iterable[Pair]) -> A:
    """Return an answer that says first what it rests on that is too old.

    Parameters
    ----------
    answer : Recommendation
    network : Network
    pairs : iterable of (str, str)
        The links that were asked about, by source and destination.
    """
    outdated = _old_links(network, pairs, time.time())
    if not outdated:
        return answer
    changes: dict[str, Any] = {"outdated": outdated, "warnings": (*outdated, *answer.warnings)}
    return replace(answer, **changes)


def refuse_old(request: PricedRequest, network: Network, pairs: Iterable[Pair]) -> None:
    """Refuse to answer from links that were measured longer ago than a request allows.

    Raises
    ------
    DataError
        If one of them was, or never.
    """
    if request.max_age_s is None:
        return
    now_s = time.time()
    for src, dst in pairs:
        _refuse_old(network.link(src, dst), now_s, request.max_age_s)


def _old_links(network: Network, pairs: Iterable[Pair], now_s: float) -> tuple[str, ...]:
    links = [network.links.get(src, {}).get(dst) for src, dst in dict.fromkeys(pairs)]
    old = [link for link in links if link and link.aggregate_gbps.outlived(now_s)]
    if not old:
        return ()
    names = ", ".join(f"{link.src} -> {link.dst}" for link in old[:MOST_NAMED])
    if len(old) > MOST_NAMED:
        names += f" and {len(old) - MOST_NAMED} more links"
    oldest_s = min(link.aggregate_gbps.measured_at_s or now_s for link in old)
    verb = "was" if len(old) == 1 else "were"
    return (
        f"{names} {verb} last measured on {utc_date(oldest_s)}, longer ago than links of their "
        "kind stay as they are: their figures fade to what is usual. `relayd probe` renews them.",
    )


def _refuse_old(link: Link, now_s: float, max_age_s: float) -> None:
    estimate = link.aggregate_gbps
    if estimate.measured_at_s is None:
        raise DataError(
            f"{link.src} -> {link.dst} has not been measured (its figure is {estimate.source}), "
            "and a greatest age was asked for. Measure or import it, or leave the age out."
        )
    age_s = now_s - estimate.measured_at_s
    if age_s > max_age_s:
        raise DataError(
            f"{link.src} -> {link.dst} was last measured {age_s / SECONDS_PER_DAY:.1f} days ago, "
            f"more than the {max_age_s / SECONDS_PER_DAY:g} days asked for. Measure it again, or "
            "allow older data."
        )

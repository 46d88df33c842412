"""Incidents of links: since when, the transfers that they touch, and what those cost for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite

from planner.model.link_states import Condition, Health, LinkState, Pair
from planner.replanning.plan import Continuation
from relayd.store.events import Event
from relayd.times import seconds_of
from relayd.transfers.expected import DIRECT, figures_of
from relayd.transfers.tracked import TransferDetails


@dataclass(frozen=True, slots=True)
class Incident:
    """A span in which a link was down or degraded.

    Attributes
    ----------
    condition : {"degraded", "down"}
        The worst of it.
    since_s : float | None
        Seconds since 1970 (UTC); None where it began before the events that were asked for.
    until_s : float | None
        None while it lasts, and where its watcher stopped before the end.
    is_over : bool
    reason : str
        What was seen last, as a clause.
    health : {"good", "bad", "stale"}
        Of the link since: ``stale`` where its watcher stopped before the end.
    """

    src: str
    dst: str
    condition: Condition
    since_s: float | None
    until_s: float | None = None
    is_over: bool = False
    reason: str = ""
    health: Health = "bad"

    def lasted_into(self, began_s: float) -> bool:
        """Return whether any of it that is known was after a time."""
        if self.until_s is not None or not self.is_over:
            return (self.until_s or inf) >= began_s
        return self.since_s is not None and self.since_s >= began_s


def incidents(events: Iterable[Event], states: Mapping[Pair, LinkState]) -> list[Incident]:
    """Return the incidents of links: those that last first, then the newest.

    Parameters
    ----------
    events : iterable of Event
        Changes of the condition of links, the oldest first.
    states : mapping
        Links that are down or degraded now.
    """
    found: list[Incident] = []
    lasting: dict[Pair, Incident] = {}
    for event in events:
        src, _, dst = event.subject.partition(">")
        before, after = (event.detail.get(key) for key in ("from", "to"))
        known = lasting.pop((src, dst), None)
        if known is None and before in ("down", "degraded"):
            known = Incident(src, dst, before, None)
        if after in ("down", "degraded"):
            reason = str(event.detail.get("reason", ""))
            known = known or Incident(src, dst, after, event.at_s)
            worst = _worst(known.condition, after)
            lasting[src, dst] = replace(known, condition=worst, reason=reason)
        elif known is not None:
            found.append(replace(known, until_s=event.at_s, is_over=True, health="good"))
    for pair, state in states.items():
        known = lasting.pop(pair, Incident(*pair, state.condition, seconds_of(state.since)))
        worst = _worst(known.condition, state.condition)
        found.append(replace(known, condition=worst, reason=state.reason))
    found += [replace(known, is_over=True, health="stale") for known in lasting.values()]
    return sorted(found, key=_order)


def _worst(*conditions: Condition) -> Condition:
    return "down" if "down" in conditions else "degraded"


def _order(one: Incident) -> tuple[bool, bool, float]:
    return one.is_over, not one.is_over and one.condition != "down", -(one.since_s or 0.0)


def links_of(details: TransferDetails) -> set[Pair]:
    """Return the links that a transfer takes, as far as its plan or its reports say."""
    routes = [path.regions for path in details.paths]
    of = details.transfer
    if not routes and of.via is not None:
        routes = [(of.src, of.dst) if of.via == DIRECT else (of.src, of.via, of.dst)]
    return {hop for regions in routes for hop in pairwise(regions)}


# ---- the end of a transfer against its plan -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outlook:
    """The end of a transfer, against its plan.

    Attributes
    ----------
    end_s : float | None
        Seconds since 1970 (UTC); None where nothing arrives any more.
    extra_s, extra_usd : float | None
        More than planned, negative for less; None where that is not known.
    """

    end_s: float | None
    extra_s: float | None = None
    extra_usd: float | None = None


def outlook(
    details: TransferDetails, rest: Continuation | None, kept: Continuation | None = None
) -> Outlook | None:
    """Return how a transfer ends; None where nothing tells.

    Parameters
    ----------
    details : TransferDetails
    rest : Continuation | None
        Time and cost from its last report on; without it, its rate tells the end.
    kept : Continuation | None
        The rest by its own plan, whose egress is as planned; the same rest unless given.
    """
    of = details.transfer
    if rest is None:
        if of.forecast_end_s is None:
            return None
        late_s = None if of.planned_end_s is None else of.forecast_end_s - of.planned_end_s
        return Outlook(of.forecast_end_s, late_s)
    if not isfinite(rest.duration_s):
        return Outlook(None)
    end_s, extra_usd = of.last_s + rest.duration_s, None
    if plan := figures_of(details.plan):
        vm_usd = plan.vm_usd(of.last_s - of.began_s) + rest.cost_usd.vm - plan.cost_usd.vm
        extra_usd = vm_usd + rest.cost_usd.egress - (kept or rest).cost_usd.egress
    return Outlook(end_s, None if of.planned_end_s is None else end_s - of.planned_end_s, extra_usd)

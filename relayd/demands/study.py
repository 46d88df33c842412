"""What a bill's traffic should have cost, and what other ways would have cost and taken."""

from __future__ import annotations

from math import inf
from typing import Any

from planner.model.errors import InputError, RelaydError
from planner.model.pricing import (
    CataloguePrices,
    metered_usd_per_gb,
    provider_of,
    usd_per_gb_or_inf,
)
from relayd.demands.bills import INTERNET, Bill
from relayd.sources.wan import Wan

_BUCKETS = {"aws": "s3://bucket", "gcp": "gs://bucket", "azure": "az://account/bucket"}
_COMPARED = dict.fromkeys(("list_usd", "direct_usd", "direct_s", "other", "other_usd", "other_s"))


def study_bill(bill: Bill, wan: Wan) -> list[dict[str, Any]]:
    """Compare each line of a bill, the dearest first; lines add up to what was paid.

    Returns
    -------
    list of dict
        Of each line ``src`` and ``dst`` (regions, or what :mod:`relayd.demands.bills` has in their
        place), ``rows``, ``volume_gb`` and ``paid_usd`` (Decimal) of all months; and, None where it
        is not known: ``list_usd``, egress by the catalogue at the tiers that a mean month reaches
        (to the internet, as to another provider on the continent); ``direct_usd``, with VMs, and
        ``direct_s``, the time of a month's volume; ``other``, the cheapest other way, which is
        ``relay REGION`` or a service, with ``other_usd`` and ``other_s``.

    Raises
    ------
    InputError
        If it is in another currency than prices are.
    """
    if bill.currency != "USD":
        remedy = "Prices are in USD: export costs in USD."
        raise InputError("bill", f"is in {bill.currency}", remedy=remedy)
    regions, prices = wan.catalogue.regions, CataloguePrices(wan.catalogue, wan.network)
    found: list[dict[str, Any]] = []
    monthly_gb: dict[tuple[str, str], float] = {}
    for (src, dst), line in sorted(bill.lines.items(), key=lambda item: -item[1].paid):
        row = {"src": src, "dst": dst, "rows": line.rows, "volume_gb": float(line.volume_gb)}
        found.append({**row, "paid_usd": line.paid, **_COMPARED})
        end, gb, here = dst, float(line.volume_gb) / bill.months, regions.get(src)
        if dst == INTERNET and here:
            others = (one for one in regions.values() if one.provider != here.provider)
            end = next((one.id for one in others if one.continent == here.continent), "")
        if ":" in end and gb > 0 and usd_per_gb_or_inf(prices, src, end, gb) < inf:
            monthly_gb[src, end] = gb
            found[-1] |= {"priced": (src, end)} | _ways(wan, src, dst, gb, bill.months)
    fees = metered_usd_per_gb(prices, monthly_gb)
    for one in found:
        if ends := one.pop("priced", None):
            one["list_usd"] = fees[ends] * one["volume_gb"]
    return found


def _ways(wan: Wan, src: str, dst: str, gb: float, months: int) -> dict[str, Any]:
    """Return what plans of a month's volume say; nothing of the internet."""
    try:
        plan = wan.plan(src, dst, volume_gb=gb, objective="cost")
        relays = [plan.best_relay, *plan.alternatives] if plan.best_relay else []
        ways: list[Any] = [(r.cost_usd.total, f"relay {r.relay}", r.duration_s) for r in relays]
        if {provider_of(src), provider_of(dst)} <= _BUCKETS.keys():
            ends = (f"{_BUCKETS[provider_of(end)]}?region={end}" for end in (src, dst))
            ways += [
                (one.cost_usd, one.name, None) for one in wan.plan(*ends, volume_gb=gb).services
            ]
    except RelaydError:  # of a pair without a path, or one that is down
        return {}
    told = {"direct_s": plan.direct.duration_s}
    if cost := plan.direct.cost_usd:
        told["direct_usd"] = cost.total * months
    usd, other, other_s = min(ways, key=lambda way: way[0], default=(None, None, None))
    return told | {"other": other, "other_usd": usd and usd * months, "other_s": other_s}

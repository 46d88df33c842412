"""Fees with tiers and two meters a provider, and what they come to, filled tier by tier."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from planner.model.catalogue import Catalogue, EgressPrice, Tier

INTERNET = (Tier(0.09, 50.0), Tier(0.085, 500.0), Tier(0.05, inf))
PRICES = (
    EgressPrice("aws", ("aws:*",), ("other-provider",), INTERNET),
    EgressPrice("azure", ("azure:*",), ("other-provider",), INTERNET[1:]),
    EgressPrice("gcp", ("gcp:*",), ("other-provider",), (Tier(0.12, 1e4), Tier(0.08, inf))),
    EgressPrice("inside", ("*",), ("same-provider",), (Tier(0.03, 100.0), Tier(0.01, inf))),
)
CATALOGUE = Catalogue({}, {}, {}, {}, PRICES)


def metered_usd(sent: Iterable[tuple[str, str, float]]) -> float:
    """Return the fees of volumes, in GB, sent from one region to another in the same month."""
    meters: dict[tuple[str, bool], float] = {}
    for src, dst, gb in sent:
        provider, other = src.split(":")[0], dst.split(":")[0]
        meter = provider, provider == other
        meters[meter] = meters.get(meter, 0.0) + gb
    names = {"aws": 0, "azure": 1, "gcp": 2}
    usd = 0.0
    for (provider, inside), gb in meters.items():
        floor = 0.0
        for tier in PRICES[3 if inside else names[provider]].tiers:
            usd += tier.usd_per_gb * max(0.0, min(gb, tier.up_to_gb) - floor)
            floor = tier.up_to_gb
    return usd

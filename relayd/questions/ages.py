"""What an answer rests on that is too old to rely on, and what renews it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from planner.fields.shared import PricedRequest
from planner.model.answer import Recommendation
from planner.model.catalogue import Catalogue, EgressPrice
from planner.model.errors import DataError
from planner.model.estimate import DAYS_PER_YEAR, SECONDS_PER_DAY
from planner.model.link import Link
from planner.model.network import Network
from relayd.questions.disputes import dispute_notes
from relayd.times import seconds_of, utc_date, utc_text

MOST_NAMED = 3
OLD_PRICE_S = DAYS_PER_YEAR * SECONDS_PER_DAY
A = TypeVar("A", bound=Recommendation)
Pair = tuple[str, str]


def dated(answer: A, catalogue: Catalogue, network: Network, pairs: Iterable[Pair]) -> A:
    """Return an answer that says first what it rests on that is too old, last what is in dispute.

    What is stored and not in it comes between.

    Parameters
    ----------
    answer : Recommendation
    catalogue : Catalogue
    network : Network
    pairs : iterable of (str, str)
        The links that were asked about, by source and destination.
    """
    now_s, asked = time.time(), tuple(dict.fromkeys(pairs))
    outdated = (*_old_links(network, asked, now_s), *old_prices(catalogue, asked, now_s))
    further = dispute_notes(network, answer, asked)
    if network.newer_samples is not None:
        further = (*newer_sample_notes(network), *further)
    if not outdated and not further:
        return answer
    return replace(answer, outdated=outdated, warnings=(*outdated, *answer.warnings, *further))


def refuse_old(
    request: PricedRequest, catalogue: Catalogue, network: Network, pairs: Iterable[Pair]
) -> None:
    """Refuse to answer from measurements and prices older than a request allows.

    Raises
    ------
    DataError
        If a link was measured longer ago, or never; or if a price is older, or has no date.
    """
    if request.max_age_s is None and request.max_price_age_s is None:
        return
    now_s = time.time()
    for src, dst in pairs:
        if request.max_age_s is not None:
            _refuse_old_link(network.link(src, dst), now_s, request.max_age_s)
        if request.max_price_age_s is not None:
            _refuse_old_price(catalogue.egress_price(src, dst), now_s, request.max_price_age_s)


# ---- measurements --------------------------------------------------------------------------------


def _old_links(network: Network, pairs: Iterable[Pair], now_s: float) -> tuple[str, ...]:
    links = [network.links.get(src, {}).get(dst) for src, dst in pairs]
    old = [link for link in links if link and link.aggregate_gbps.outlived(now_s)]
    if not old:
        return ()
    names = _named([f"{link.src} -> {link.dst}" for link in old], "links")
    oldest_s = min(link.aggregate_gbps.measured_at_s or now_s for link in old)
    verb, what = ("was", "its figure fades") if len(old) == 1 else ("were", "their figures fade")
    return (
        f"{names} {verb} last measured on {utc_date(oldest_s)}, longer ago than such links stay as "
        f"they are: {what} to what is usual. `relayd probe` measures again.",
    )


def _refuse_old_link(link: Link, now_s: float, max_age_s: float) -> None:
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


# ---- prices --------------------------------------------------------------------------------------


def old_prices(catalogue: Catalogue, pairs: Iterable[Pair], now_s: float) -> tuple[str, ...]:
    """Return a sentence on the prices between some regions that are too old to rely on."""
    old: dict[str, str] = {}
    for pair in pairs:
        try:
            price = catalogue.egress_price(*pair)
        except DataError:  # nothing is sent where no price is known
            continue
        age_s = price_age_s(price, now_s)
        if age_s is not None and age_s > OLD_PRICE_S:
            old[price.name] = price.as_of
    if not old:
        return ()
    prices = "price" if len(old) == 1 else "prices"
    verb = "is" if len(old) == 1 else "are"
    return (
        f"The egress {prices} {_named(list(old), 'prices')} {verb} of {min(old.values())}, more "
        "than a year old: compare with the provider's page. `relayd catalogue update` renews "
        "AWS's, and Azure's to the internet; an entry of that name in a file of your own, any.",
    )


def _refuse_old_price(price: EgressPrice, now_s: float, max_age_s: float) -> None:
    age_s = price_age_s(price, now_s)
    if age_s is None or age_s > max_age_s:
        raise DataError(
            f"The egress price {price.name} is of {price.as_of or 'an unknown date'}, and may be "
            f"{max_age_s / SECONDS_PER_DAY:g} days old at most. Put today's in a catalogue file of "
            "your own, with `as_of`, try `relayd catalogue update`, or allow older prices."
        )


def price_age_s(price: EgressPrice, now_s: float) -> float | None:
    """Return the age of a price, at most; None where it has no date."""
    if not price.as_of:
        return None
    return now_s - seconds_of(price.as_of if price.as_of.count("-") == 2 else f"{price.as_of}-01")


def _named(names: list[str], what: str) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more {what}" if names[MOST_NAMED:] else shown


_WHY = {
    "none": "no snapshot has been made of them. `relayd store rebuild` makes one.",
    "begun": "a snapshot of them was begun at {at} and has not ended. If it was interrupted, "
    "`relayd store rebuild` makes one.",
    "failed": "making a snapshot of them failed at {at}. `relayd store rebuild` tries again, and "
    "says what is wrong.",
}


def newer_sample_notes(network: Network) -> tuple[str, ...]:
    """Return a sentence on samples that the network's snapshot does not know, if there are any."""
    newer = network.newer_samples
    if newer is None:
        return ()
    why = _WHY[newer.reason].format(at=utc_text(newer.tried_at_s or 0.0))
    are = "sample is" if newer.samples == 1 else "samples are"
    since = utc_text(newer.since_s)
    return (f"{newer.samples:,} {are} not in this answer, stored since {since}: {why}",)

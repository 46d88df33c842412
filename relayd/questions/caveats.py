"""Data of an answer that are too old, contradicted, or not confirmed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from planner.fields.shared import PricedRequest
from planner.model.answer import PlanOnVms, Recommendation
from planner.model.catalogue import DEFAULT_NETWORK, Catalogue, EgressPrice, Region
from planner.model.errors import DataError
from planner.model.estimate import DAYS_PER_YEAR, SECONDS_PER_DAY, Estimate, Origin, WantedAddresses
from planner.model.link import Link, LinkFigure
from planner.model.network import Network
from planner.model.throughput import crosses_border
from planner.model.units import gbps_text
from probes.metrics import Metric
from probes.samples import FILES
from relayd.catalogue.copies import REQUESTS
from relayd.times import seconds_of, utc_date, utc_text

MOST_NAMED = 3
MANY_VCPUS = 64  # in one region: accounts begin with less, or hardly more
MUCH_EGRESS_USD = 100.0  # a gateway's processing on top of it is worth knowing
OLD_PRICE_S = DAYS_PER_YEAR * SECONDS_PER_DAY
LEAST_DISPUTED = 2
DISPUTED_SHARE = 0.1
"""Of the samples that count: as many that contradict are no odd tests."""
_FIGURES: dict[LinkFigure, tuple[str, Metric]] = {
    "rtt_ms": ("round-trip time", "rtt_ms"),
    "per_flow_mbps": ("throughput of one flow", "per_flow_mbps"),
    "aggregate_gbps": ("throughput", "aggregate_mbps"),
}
"""In words, and the metric of its samples."""
A = TypeVar("A", bound=Recommendation)
Pair = tuple[str, str]


def dated(
    answer: A,
    catalogue: Catalogue,
    network: Network,
    pairs: Iterable[Pair],
    addresses: WantedAddresses = "auto",
) -> A:
    """Return an answer that says first what it rests on that is too old, last what is in dispute.

    What is stored and not in it, and over which network links are, comes between.

    Parameters
    ----------
    answer : Recommendation
    catalogue : Catalogue
    network : Network
    pairs : iterable of (str, str)
        The links that were asked about, by source and destination.
    addresses : {"auto", "public", "private"}
        As asked.
    """
    now_s, asked = time.time(), tuple(dict.fromkeys(pairs))
    links, usual = (
        [link for src, dst in asked if (link := rows.get(src, {}).get(dst))]
        for rows in (network.links, network.usual)
    )
    outdated = (*_old_links(links, now_s), *old_prices(catalogue, asked, now_s))
    linked = _links_of(answer, asked)
    further = (
        *_newer_sample_notes(network),
        *_partition_notes(catalogue, asked),
        *(_address_notes(usual, catalogue) if addresses == "auto" else ()),
        *(figure.sentence for figure in disputed_figures(network, linked)),
        *_transfer_notes(network, linked),
        *_alone_said(network, answer, linked),
        *_unknown_type_notes(usual),
        *_public_price_notes(links, answer),
    )
    counts = answer.vms if isinstance(answer, PlanOnVms) else {}
    found = {region: catalogue.vm_types.get(network.sites[region].vm_type) for region in counts}
    types = {region: vm for region, vm in found.items() if vm}
    vcpus = {region: counts[region] * vm.vcpus for region, vm in types.items()}
    if not (outdated or further or types):
        return answer
    warnings = (*outdated, *answer.warnings, *_quotas_to_check(network, vcpus), *further)
    more: dict[str, Any] = {}
    if types:
        more = {"vcpus": vcpus, "vm_types": {region: vm.id for region, vm in types.items()}}
    return replace(answer, outdated=outdated, warnings=warnings, **more)


def refuse_old(
    request: PricedRequest, catalogue: Catalogue, network: Network, pairs: Iterable[Pair]
) -> None:
    """Refuse to answer from measurements and prices older than a request allows.

    Raises DataError if a link was measured longer ago, or never; or if a price is older, or has no
    date.
    """
    now_s, most_s, most_price_s = time.time(), request.max_age_s, request.max_price_age_s
    if most_s is None and most_price_s is None:
        return
    for src, dst in pairs:
        if most_s is not None:
            estimate = network.link(src, dst).aggregate_gbps
            if estimate.measured_at_s is None:
                raise DataError(
                    f"{src} -> {dst} has not been measured (its figure is {estimate.source}), and "
                    "a greatest age was asked for. Measure or import it, or leave the age out."
                )
            if (age_s := now_s - estimate.measured_at_s) > most_s:
                raise DataError(
                    f"{src} -> {dst} was last measured {age_s / SECONDS_PER_DAY:.1f} days ago, "
                    f"more than the {most_s / SECONDS_PER_DAY:g} days asked for. Measure it again, "
                    "or allow older data."
                )
        if most_price_s is not None:
            price = catalogue.egress_price(src, dst)
            old_s = price_age_s(price, now_s)
            if old_s is None or old_s > most_price_s:
                days = f"{most_price_s / SECONDS_PER_DAY:g}"
                raise DataError(
                    f"The egress price {price.name} is of {price.as_of or 'an unknown date'}, and "
                    f"may be {days} days old at most. Put today's in a catalogue file of your own, "
                    "with `as_of`, try `relayd data catalogue update`, or allow older prices."
                )


def at_border(catalogue: Catalogue, network: Network, pairs: Iterable[Pair]) -> str:
    """Return a sentence on links that are not known because they cross China's border, or none."""
    links = network.links
    unknown = [(src, dst) for src, dst in pairs if dst not in links.get(src, {})]
    ends = [(catalogue.region(src), catalogue.region(dst)) for src, dst in unknown]
    across = [(a, b) for a, b in ends if crosses_border(a.law_domain, b.law_domain)]
    return f"No model crosses China's border ({_pairs(across)})." if across else ""


# ---- vCPUs ---------------------------------------------------------------------------------------


def _quotas_to_check(network: Network, vcpus: Mapping[str, int]) -> Iterator[str]:
    """Name vCPUs that accounts may not be allowed, where no quota is stated and no fleet runs."""
    sites = network.sites
    unknown = {r: n for r, n in vcpus.items() if not (sites[r].quotas or sites[r].vms)}
    many = [f"{n} at {r}" for r, n in unknown.items() if n >= MANY_VCPUS]
    if many:
        yield (
            f"This takes vCPUs that not every account has: {', '.join(many)}. Ask for quotas in "
            "time; plans keep to those that a catalogue states."
        )


# ---- measurements --------------------------------------------------------------------------------


def _old_links(links: Iterable[Link], now_s: float) -> Iterator[str]:
    old = [link for link in links if link.aggregate_gbps.outlived(now_s)]
    if not old:
        return
    names = _links(old)
    oldest_s = min(link.aggregate_gbps.measured_at_s or now_s for link in old)
    verb, what = ("was", "its figure fades") if len(old) == 1 else ("were", "their figures fade")
    yield (
        f"{names} {verb} last measured on {utc_date(oldest_s)}, longer ago than such links stay as "
        f"they are: {what} to what is usual. `relayd probe` measures again."
    )


# ---- prices --------------------------------------------------------------------------------------


def old_prices(catalogue: Catalogue, pairs: Iterable[Pair], now_s: float) -> Iterator[str]:
    """Yield sentences on prices between some regions that are too old or unconfirmed."""
    old: dict[str, None] = {}
    unconfirmed: dict[str, None] = {}
    for pair in pairs:
        try:
            price = catalogue.egress_price(*pair)
        except DataError:  # nothing is sent where no price is known
            continue
        if price.unconfirmed:
            unconfirmed[price.name] = None
        age_s = price_age_s(price, now_s)
        if age_s is not None and age_s > OLD_PRICE_S:
            old[f"{price.name} ({price.as_of})"] = None
    if unconfirmed:
        prices, verb = ("price", "is") if len(unconfirmed) == 1 else ("prices", "are")
        yield (
            f"The egress {prices} {_named(list(unconfirmed), 'prices')} {verb} not "
            "confirmed by a document: compare with the provider's page, or state your own."
        )
    if not old:
        return
    prices, verb = ("price", "is") if len(old) == 1 else ("prices", "are")
    yield (
        f"The egress {prices} {_named(list(old), 'prices')} {verb} more than a year old: `relayd "
        "data catalogue update` renews some; override other prices in your own catalogue file."
    )


def price_age_s(price: EgressPrice, now_s: float) -> float | None:
    """Return the age of a price, at most; None where it has no date."""
    if not price.as_of:
        return None
    return now_s - seconds_of(price.as_of if price.as_of.count("-") == 2 else f"{price.as_of}-01")


def _named(names: list[str], what: str) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more {what}" if names[MOST_NAMED:] else shown


def _public_price_notes(links: Iterable[Link], answer: Recommendation) -> Iterator[str]:
    """Yield a sentence on what the price of traffic over public addresses leaves out."""
    cost, names = getattr(answer, "cost_usd", None), {fee.name: None for fee in answer.fees}
    names = {name: None for name in names if not name.startswith(REQUESTS)}
    much = names or (cost and cost.egress >= MUCH_EGRESS_USD)
    if not much or not any(link.address == "public" for link in links):
        return
    on_top = "a NAT gateway, a private link or the like costs more: state it in a catalogue file"
    if names:
        on_top = f"the fees on top are those of your catalogue ({_named([*names], 'fees')})"
    yield f"Prices of egress hold for VMs with public addresses; {on_top}."


_WHY = {
    "none": "no snapshot has been made of them. `relayd data store rebuild` makes one.",
    "begun": "a snapshot of them was begun at {at} and has not ended. If it was interrupted, "
    "`relayd data store rebuild` makes one.",
    "failed": "making a snapshot of them failed at {at}. `relayd data store rebuild` tries again, "
    "and says what is wrong.",
}


def _newer_sample_notes(network: Network) -> Iterator[str]:
    """Yield a sentence on samples that the network's snapshot does not know, if there are any."""
    newer = network.newer_samples
    if newer is None:
        return
    why = _WHY[newer.reason].format(at=utc_text(newer.tried_at_s or 0.0))
    are = "sample is" if newer.samples == 1 else "samples are"
    since = utc_text(newer.since_s)
    yield f"{newer.samples:,} {are} not in this answer, stored since {since}: {why}"


def _partition_notes(catalogue: Catalogue, pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield sentences on pairs of regions of which one is in a partition of its own."""
    ends = [(catalogue.region(src), catalogue.region(dst)) for src, dst in pairs]
    apart = [(src, dst) for src, dst in ends if src.is_apart or dst.is_apart]
    within = [(src, dst) for src, dst in apart if src.partition == dst.partition]
    across = [pair for pair in apart if pair not in within]
    if within:
        partitions = " and ".join(dict.fromkeys(src.partition for src, _ in within))
        yield (
            f"{_pairs(within)}: within a partition of its own ({partitions}), for which no region "
            "outside it relays."
        )
    if across:
        partitions = " and ".join(
            dict.fromkeys(end.partition for pair in across for end in pair if end.is_apart)
        )
        is_border = any(crosses_border(src.law_domain, dst.law_domain) for src, dst in across)
        border = " across China's border, which no model crosses" if is_border else ""
        yield (
            f"{_pairs(across)}: into or out of a partition with accounts of its own "
            f"({partitions}), over the public internet{border}, at internet prices, without "
            "private addresses, and no region of another partition relays. Models rest on no "
            "measurement of such paths: `relayd probe` measures them."
        )


def _pairs(ends: list[tuple[Region, Region]]) -> str:
    return _named([f"{src.id} -> {dst.id}" for src, dst in ends], "links")


def _address_notes(links: Iterable[Link], catalogue: Catalogue) -> Iterator[str]:
    """Yield a sentence on links whose VMs are assumed to have private addresses, or may have."""
    between = [
        link
        for link in links
        if {catalogue.region(end).private_network for end in (link.src, link.dst)}
        == {DEFAULT_NETWORK}
    ]
    private = [link for link in between if link.address == "private"]
    if assumed := [link for link in private if link.aggregate_gbps.source != "measured"]:
        verb = "is" if len(assumed) == 1 else "are"
        yield (
            f"{_links(assumed)} {verb} taken to be over private addresses, which VMs of one VPC "
            "network have in all regions of the provider. Where yours have none in common, ask for "
            "public ones, which carry less: `--addresses public`."
        )
    if public := [link for link in between if link.address == "public"]:
        verb = "was" if len(public) == 1 else "were"
        yield (
            f"{_links(public)} {verb} planned over public addresses, as tests between regions of "
            "the provider were. Private ones, which VMs of one VPC network have, carry more: "
            "`--addresses private`."
        )


def _links(links: Iterable[Link]) -> str:
    return _named([f"{link.src} -> {link.dst}" for link in links], "links")


# ---- disputes ------------------------------------------------------------------------------------


class DisputedFigure(NamedTuple):
    """A figure that samples contradict, or that rests on a new level without confirmation.

    Attributes
    ----------
    src, dst : str
        Region ids; equal for the cap of a VM.
    metric : Metric
        Of the samples.
    sources : tuple of str
        Who reported them.
    samples : int
        How many contradict the figure; 0 of a new level, whose samples count.
    sentence : str
    """

    src: str
    dst: str
    metric: Metric
    sources: tuple[str, ...]
    samples: int
    sentence: str


def _links_of(answer: object, asked: Iterable[Pair]) -> dict[Pair, None]:
    """Return the links that were asked about and, where an answer has paths, those on them."""
    pairs = dict.fromkeys(asked)
    for path in getattr(answer, "paths", ()):
        pairs.update(dict.fromkeys(pairwise(getattr(path, "regions", ()))))
    return pairs


def _transfer_notes(network: Network, pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield a sentence for each link whose measurements transfers fell short of, unexplained."""
    for src, dst in pairs:
        link = network.usual.get(src, {}).get(dst)
        figures = link and link.aggregate_gbps.origin.figures
        if link and figures and figures.transfers and figures.transfers.contradicts:
            reached = gbps_text(figures.transfers.gbps)
            yield (
                f"Transfers over {src} -> {dst} reached {reached} Gbit/s a VM pair (median), where "
                f"{gbps_text(link.aggregate_gbps.expected)} were measured. What held them is not "
                "known, so they count as a lower bound: report `limited_by`, or measure it."
            )


def _alone_said(network: Network, answer: object, linked: Iterable[Pair]) -> Iterator[str]:
    """Yield a sentence for each source on whose word alone figures of links rest.

    Relays that were passed over count where VMs' caps leave them something to gain.
    """
    if network.reporters <= {None, (), (FILES,)}:
        return
    links, said = network.usual, defaultdict[tuple[str, ...], dict[str, None]](dict)
    by_region = {
        name: {_alone(one.origin) for one in (site.egress_gbps, site.ingress_gbps, site.window_mb)}
        for name, site in network.sites.items()
    }
    pairs = dict.fromkeys(linked)
    if getattr(answer, "request", {}).get("relays", "none") != "none":
        for src, dst in list(pairs):
            link = links.get(src, {}).get(dst)
            if link and link.limited_by != "vm":
                pairs.update((pair, None) for r in links for pair in ((src, r), (r, dst)))
    for src, dst in pairs:
        if link := links.get(src, {}).get(dst):
            by = {_alone(one.origin) for one in link.estimates.values()}
            for one in filter(None, by | by_region[src] | by_region[dst]):
                said[one][f"{src} -> {dst}"] = None
    for names, rest in said.items():
        yield (
            f"Figures of {_named(list(rest), 'links')} rest on the word of {_joined(names)} alone, "
            "which nothing confirms: `relayd probe` measures them."
        )


def _alone(origin: Origin) -> tuple[str, ...]:
    """Name the sources on whose word alone an estimate rests: several, where it is inferred."""
    by = (origin.figures and origin.figures.reported_by) or ()
    return by if by != (FILES,) and (len(by) == 1 or origin.kind != "measured") else ()


def _unknown_type_notes(links: Iterable[Link]) -> Iterator[str]:
    """Yield a sentence for each VM type that links were measured with and no catalogue has."""
    measured: dict[str, list[str]] = {}
    for link in links:
        for estimate in (link.per_flow_mbps, link.aggregate_gbps):
            figures = estimate.origin.figures
            if estimate.origin.kind == "measured" and figures and figures.vm_type:
                measured.setdefault(figures.vm_type, []).append(f"{link.src} -> {link.dst}")
    for name, pairs in measured.items():
        yield (
            f"{_named(list(dict.fromkeys(pairs)), 'links')} was measured with {name}, which the "
            "catalogue does not have: caps and prices are those of the VM types above. A "
            "[[vm_type]] in a catalogue file of your own names it."
        )


def disputed_figures(network: Network, pairs: Iterable[Pair]) -> list[DisputedFigure]:
    """Return the figures of links, and of the VMs at their ends, that are in dispute."""
    found: dict[DisputedFigure, None] = {}
    for src, dst in pairs:
        link = network.usual.get(src, {}).get(dst)
        if link is None:
            continue
        figures: list[tuple[str, Estimate, str, str, Metric]] = [
            (f"{words} of {src} -> {dst}", link.estimates[name], src, dst, metric)
            for name, (words, metric) in _FIGURES.items()
        ]
        cap = network.sites[src].egress(link.address)
        figures.append((f"egress cap of {src}", cap, src, src, "egress_cap_mbps"))
        cap = network.sites[dst].ingress(link.address)
        figures.append((f"ingress cap of {dst}", cap, dst, dst, "ingress_cap_mbps"))
        for figure in figures:
            found.update(dict.fromkeys(_disputes_of(*figure)))
    return list(found)


def _disputes_of(
    what: str, estimate: Estimate, src: str, dst: str, metric: Metric
) -> Iterator[DisputedFigure]:
    figures = estimate.origin.figures
    if figures is None:
        return
    if figures.unconfirmed and figures.reported_by:
        sentence = (
            f"The {what} has changed by what {_joined(figures.reported_by)} report, which the "
            "prober has not confirmed: `relayd probe` measures it."
        )
        yield DisputedFigure(src, dst, metric, figures.reported_by, 0, sentence)
    least = max(LEAST_DISPUTED, DISPUTED_SHARE * estimate.origin.samples)
    count = figures.disputed or 0
    if figures.disputed_by and estimate.source != "measured":
        samples, wait, do = ("sample", "waits", "does") if count == 1 else ("samples", "wait", "do")
        sentence = (
            f"{count} {samples} of {_joined(figures.disputed_by)} of the {what}, far off what "
            f"links like it show, {wait} for a second source and {do} not count: see `relayd data "
            "samples list --disputed`."
        )
        yield DisputedFigure(src, dst, metric, figures.disputed_by, count, sentence)
    elif figures.disputed_by and count >= least:
        sentence = (
            f"{count} samples of {_joined(figures.disputed_by)} contradict the {what} "
            "and do not count: see `relayd data samples list --disputed`."
        )
        yield DisputedFigure(src, dst, metric, figures.disputed_by, count, sentence)


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

"""The graph of estimates as a JSON document or as bytes, and back: exports, service, client.

As bytes, a service sends it to those who keep a copy: the length of a JSON object (8 bytes,
little-endian) and the object, with all but the links; then, for the links in use and the others,
the evidence and the records of the whole table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from itertools import chain
from math import inf, isfinite
from typing import Any, TypeAlias, TypeVar

import numpy as np

from planner.model.catalogue import Catalogue, Region
from planner.model.errors import FormatError, InputError
from planner.model.estimate import (
    BOUNDS,
    METHODS,
    Achieved,
    Estimate,
    Figures,
    Origin,
    Prior,
    RateCut,
)
from planner.model.link import LIMITED_BY, LINK_FIGURES, PRIVATE_CAPS, SITE_FIGURES, Link, Site
from planner.model.link_array import EVIDENCE, LINK, LinkArray
from planner.model.link_states import LinkState
from planner.model.network import Links, Network, NewerSamples, Snapshot
from planner.model.verification import AchievedShare, Verified, VerifiedPath

T = TypeVar("T")
Buffer: TypeAlias = "bytes | memoryview"

NETWORK_COLUMNS = "application/vnd.relayd.network-columns.v2"
"""The media type; another layout will have another."""
_LENGTH = 8
_LISTS = ("links", "other_links")
_ESTIMATES = {Site: (*SITE_FIGURES, *PRIVATE_CAPS), Link: LINK_FIGURES}
_PLACE = ("city", "country", "continent", "latitude_deg", "longitude_deg")
_ACCESS = ("access", "connections_in", "connections_out")


def regions_as_json(
    regions: Iterable[Region], sites: Mapping[str, Site], catalogue: Catalogue
) -> list[dict[str, Any]]:
    """Return regions as JSON types, with their aliases and the VM types that plans use there.

    `sites` are those of the graph, by region; elsewhere the catalogue's VM types are assumed.
    """
    aliases: dict[str, list[str]] = {}
    for alias, members in catalogue.aliases.items():
        for member in members:
            aliases.setdefault(member, []).append(alias)
    found = []
    for region in regions:
        site = sites.get(region.id)
        assumed = catalogue.default_vm_types.get(region.provider, "")
        of_graph = {"in_graph": site is not None, "vm_type": site.vm_type if site else assumed}
        named = {name: getattr(region, name) for name in ("id", "provider", *_PLACE, *_ACCESS)}
        found.append({**named, **of_graph, "aliases": aliases.get(region.id, [])})
    return found


def document_of(network: Network) -> dict[str, Any]:
    """Return everything that a network holds as JSON types; :func:`network_of` reads it again.

    ``links`` are those of usual times: a reader lays ``leg_states`` over them. ``other_links`` are
    those over the kind of address that is not in use.
    """
    return {
        name: list(chain.from_iterable(value)) if isinstance(value, Iterator) else value
        for name, value in members_of(network)
    }


def members_of(network: Network) -> Iterator[tuple[str, Any]]:
    """Yield the members of :func:`document_of`, each with its name.

    A list of links, which may be long, comes as an iterator of its parts.
    """
    yield "snapshot", asdict(network.snapshot)
    yield "aged_to_s", network.aged_to_s
    yield "sites", [as_json(site) for site in network.sites.values()]
    for name, links in zip(_LISTS, (network.usual, network.others), strict=True):
        yield name, ([as_json(link) for link in links.out_of(src)] for src in links)
    yield "leg_states", [asdict(state) for state in network.link_states.values()]
    yield "verifications", [asdict(verified) for verified in network.verified.values()]
    yield "achieved", list(map(asdict, network.achieved))
    yield "newer_samples", network.newer_samples and asdict(network.newer_samples)


def network_of(document: Mapping[str, Any]) -> Network:
    """Return the network of a document; what :func:`document_of` made comes back equal.

    Keys that a newer version of relayd has added are left out, those that an older one lacks are
    empty. What is no such document is a FormatError.
    """
    try:
        regions = [row["region"] for row in document["sites"]]
        links, others = (
            LinkArray.of(map(link_of, document.get(name, ())), regions)
            for name in ("links", "other_links")
        )
        return _network_with(document, links, others)
    except (KeyError, TypeError, InputError) as error:
        raise _no_network(error) from None


def _network_with(document: Mapping[str, Any], links: Links, others: Links) -> Network:
    """Return the network of a document whose links were read already.

    What is no such document is a KeyError or a TypeError.
    """
    sites = {row["region"]: _known(Site, row) for row in document["sites"]}
    states = [_known(LinkState, row) for row in document.get("leg_states", ())]
    verified = [_known(Verified, row) for row in document.get("verifications", ())]
    newer = document.get("newer_samples")
    return Network(
        sites,
        links,
        _known(Snapshot, document["snapshot"]),
        {(state.src, state.dst): state for state in states},
        {(found.src, found.dst): found for found in verified},
        document.get("aged_to_s"),
        others,
        newer and _known(NewerSamples, newer),
        tuple(_known(AchievedShare, row) for row in document.get("achieved", ())),
    )


def _no_network(error: Exception) -> FormatError:
    """Return an error that says why something can't be read as a network."""
    problem = f"is not a graph of this version of relayd ({error!r})"
    return FormatError("graph", problem, remedy="Use the same version on both sides.")


def _known(kind: type[T], row: Mapping[str, Any]) -> T:
    """Return a dataclass with the fields that it knows of a row."""
    names = {field.name for field in fields(kind)} - {"quotas"}  # type: ignore[arg-type]
    estimates = _ESTIMATES.get(kind, ())
    # An estimate that is not known is left out, as if it were not there.
    found = {
        name: value
        for name, value in row.items()
        if name in names and (value is not None or name not in estimates)
    }
    for name, value in found.items():
        if name in estimates:
            found[name] = _estimate_of(value)
        elif isinstance(value, list | tuple):  # paths of a verification, regions of a path
            found[name] = tuple(
                _known(VerifiedPath, one) if isinstance(one, Mapping) else one for one in value
            )
    return kind(**found)


def link_of(row: Mapping[str, Any]) -> Link:
    """Return the link that :func:`as_json` made a row of."""
    limited_by = {**row}.get("limited_by")  # other versions may not say it, or name it otherwise
    known = limited_by if limited_by in LIMITED_BY else "unknown"
    return _known(Link, {**row, "limited_by": known})


def as_json(one: Site | Link) -> dict[str, Any]:
    """Return a site, without its quotas, or a link as JSON types."""
    named = ((field.name, getattr(one, field.name)) for field in fields(one))
    return {
        name: estimate_as_json(value) if isinstance(value, Estimate) else value
        for name, value in named
        if name != "quotas"
    }


def estimate_as_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON types; a bound that is not known, infinity, becomes None."""
    return {
        "low": _finite(estimate.low),
        "expected": _finite(estimate.expected),
        "high": _finite(estimate.high),
        "source": estimate.source,
        "measured_at_s": estimate.measured_at_s,
        "samples": estimate.samples,
        "basis": estimate.basis,
        "prior": estimate.prior and estimate.prior._asdict(),
        "origin": origin_as_json(estimate.origin),
    }


_PARTS: dict[str, type[RateCut | Achieved]] = {"rate_cut": RateCut, "transfers": Achieved}
"""Figures that have figures of their own."""


def origin_as_json(origin: Origin) -> dict[str, Any]:
    """Return an origin as JSON types, without keys that would be null or count nothing."""
    found = {
        name: value
        for name, value in origin._asdict().items()
        if value is not None and (value != 0 or name.endswith("_s"))
    }
    if (figures := origin.figures) is not None:
        known = {name: value for name, value in figures._asdict().items() if value is not None}
        parts = {name: known[name]._asdict() for name in _PARTS if name in known}
        found["figures"] = known | parts
    return found


def _finite(figure: float) -> float | None:
    return figure if isfinite(figure) else None


def _estimate_of(row: Mapping[str, Any]) -> Estimate:
    low, expected, high = (inf if row[name] is None else row[name] for name in BOUNDS)
    prior, origin = row.get("prior"), row.get("origin")
    if origin is None or origin["method"] not in METHODS:  # of another version
        newest_s, note = row["measured_at_s"], Figures(note=row["basis"])
        found = Origin(row["source"], "unknown", row["samples"], 0, newest_s, figures=note)
    else:
        found = origin_of(origin)
    return Estimate(low, expected, high, found, prior and Prior(**prior))


def origin_of(found: Mapping[str, Any]) -> Origin:
    """Read an origin from what :func:`origin_as_json` returned."""
    known = {name: value for name, value in found.items() if name in Origin._fields}
    if "figures" in known:
        figures: dict[str, Any] = dict(known["figures"])
        figures |= {name: tuple(of) for name, of in figures.items() if isinstance(of, list)}
        for name, part in _PARTS.items():
            if name in figures:
                figures[name] = part(**figures[name])
        known["figures"] = Figures(*map(figures.get, Figures._fields))
    return Origin(**known)


# ---- bytes ---------------------------------------------------------------------------------------


def network_columns(network: Network) -> Iterator[Buffer]:
    """Yield a network as bytes, piece by piece, for :func:`network_of_columns` to read."""
    arrays = dict(zip(_LISTS, (network.usual, network.others), strict=True))
    head: dict[str, Any] = dict(members_of(network))
    for name, links in arrays.items():
        head[name] = {
            "regions": len(links.regions),
            "evidence": len(links.evidence),
            "origins": list(map(origin_as_json, links.origins)),
        }
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    yield len(text).to_bytes(_LENGTH, "little") + text
    for links in arrays.values():
        yield links.evidence.tobytes()
        for position in range(len(links.regions)):
            yield links.row(position).tobytes()


def network_of_columns(content: bytes) -> Network:
    """Return the network that :func:`network_columns` wrote; its links stay in these bytes.

    If these are no such bytes, or not all of them, that is a FormatError.
    """
    try:
        at = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
        head = json.loads(content[_LENGTH:at])
        regions = [row["region"] for row in head["sites"]]
        arrays = []
        for name in _LISTS:
            size, count = head[name]["regions"], head[name]["evidence"]
            evidence = np.frombuffer(content, EVIDENCE, count, at)
            at += evidence.nbytes
            table = np.frombuffer(content, LINK, size * size, at).reshape(size, size)
            at += table.nbytes
            origins = tuple(map(origin_of, head[name]["origins"]))
            arrays.append(LinkArray(tuple(regions[:size]), table, evidence, origins))
        return _network_with(head, *arrays)
    except (LookupError, TypeError, ValueError) as error:
        raise _no_network(error) from None

"""The VM types that samples were taken with, and the one that most samples of a region name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.link import Site
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.groups import Ints
from probes.importers.limits import card_gbps
from probes.metrics import CAPS, THROUGHPUT, number_of
from probes.samples import OWN, NameTable, Samples

OF_VM_TYPES = (*THROUGHPUT, *CAPS)
"""Metrics whose figures depend on the types of the VMs."""


Votes: TypeAlias = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Region to source to VM type to the number of samples that name it."""


def votes_of(samples: Samples) -> Votes:
    """Count the VM types that throughput samples name."""
    votes: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(Counter))
    rows, names = samples.rows, list(samples.names)
    rows = rows[np.isin(rows["metric"], [number_of(name) for name in OF_VM_TYPES])]
    for end in ("src", "dst"):
        keys = [rows[name].astype(np.int64) for name in (end, "source", f"{end}_vm")]
        shape = (len(names),) * len(keys)
        unique, counts = np.unique(np.ravel_multi_index(keys, shape), return_counts=True)
        for region, source, vm, count in zip(*np.unravel_index(unique, shape), counts, strict=True):
            votes[names[region]][names[source]][names[vm]] += int(count)
    return votes


OTHER, UNKNOWN, UNSTATED, SAME = range(4)
"""The VM types of a sample against those of its ends: another that the catalogue knows at one of
them, one that it does not know, no statement, or the same at both."""


def fit_of_types(samples: Samples, sites: Mapping[str, Site], catalogue: Catalogue) -> Ints:
    """Compare samples' VM types with those of sites, which are the first of their names.

    Of each sample, it returns the worse of both ends, such as :data:`UNKNOWN`.
    """
    plain = NameTable()
    sampled = plain.numbers(map(plain_name, samples.names))
    assumed = plain.numbers(["", *(site.vm_type.partition(":")[2] for site in sites.values())])
    unknown = unknown_types(samples.names, catalogue)
    unlisted = np.isin(sampled, plain.numbers(map(plain_name, unknown)))
    fits = np.full(len(samples), SAME)
    for end in ("src", "dst"):
        given = samples.rows[f"{end}_vm"]
        vm = sampled[given]
        is_same = vm == assumed[samples.rows[end]]
        of_end = np.select([vm == 0, is_same, unlisted[given]], [UNSTATED, SAME, UNKNOWN], OTHER)
        fits = np.minimum(fits, of_end)
    return fits


def unknown_types(names: Iterable[str], catalogue: Catalogue) -> list[str]:
    """Return the names that are of no VM type of the catalogue."""
    known = {plain_name(name) for name in catalogue.vm_types}
    return sorted({name for name in names if name and plain_name(name) not in known})


def within_cards(
    samples: Samples, fits: Ints, sites: Mapping[str, Site], catalogue: Catalogue
) -> Samples:
    """Return samples whose rates are not above what their ends' VM types carry between regions.

    What was measured with VMs of a type that is not known may be more than those of the type that
    is assumed can carry.
    """
    types = (catalogue.vm_types.get(site.vm_type) for site in sites.values())
    capable = (replace(one, burst_gbps=one.wan_burst_gbps) if one else None for one in types)
    cards = np.array([inf, *(card_gbps(one) if one else inf for one in capable)]) * MBPS_PER_GBPS
    rows = samples.rows
    most = np.minimum(cards[rows["src"]], cards[rows["dst"]])
    of_pairs = np.isin(rows["metric"], [*map(number_of, THROUGHPUT)])
    above = of_pairs & (fits < SAME) & (fits > OTHER) & (rows["value"] > most)
    if not above.any():
        return samples
    rows = rows.copy()
    rows["value"][above] = most[above]
    return replace(samples, rows=rows)


def voted_types(votes: Votes, catalogue: Catalogue) -> dict[str, str]:
    """Return the VM type of the catalogue that most throughput samples name, by region.

    Those of the own prober, where it has measured there; else each source has one vote.
    """
    found = {}
    for region, of_region in votes.items():
        picks = []
        for source, of_source in of_region.items():
            named: Counter[str] = Counter()  # of names that are written in several ways
            for name, count in of_source.items():
                vm_type = f"{region.partition(':')[0]}:{plain_name(name)}"
                if vm_type in catalogue.vm_types and (source == OWN or OWN not in of_region):
                    named[vm_type] += count
            if named:
                picks.append(max(named, key=lambda name: (named[name], name)))
        if picks:
            found[region] = max(picks, key=lambda name: (picks.count(name), name))
    return found


def usual_types(voted: Mapping[str, str]) -> dict[str, str]:
    """Return the VM type that most measured regions of a provider have, by provider.

    What runs in several regions is what its owner would start in another one. A type of a single
    region says nothing of others.
    """
    named: dict[str, Counter[str]] = defaultdict(Counter)
    for region, vm_type in voted.items():
        named[region.partition(":")[0]][vm_type] += 1
    return {
        provider: vm_type
        for provider, types in named.items()
        for vm_type, regions in types.most_common(1)
        if regions > max(1, types.total() // 2)
    }


def plain_name(vm_name: str) -> str:
    """Return the name that catalogues give a VM type, without a provider or Azure's prefix."""
    return vm_name.rpartition(":")[2].removeprefix("Standard_")

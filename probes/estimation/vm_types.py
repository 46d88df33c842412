"""The VM types that samples were taken with, and the one that most samples of a region name."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.link import Site
from probes.estimation.groups import Bools
from probes.samples import METRICS, OWN, NameTable, Samples

THROUGHPUT = {"per_flow_mbps", "aggregate_mbps", "egress_cap_mbps", "ingress_cap_mbps"}


Votes: TypeAlias = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Region to source to VM type to the number of samples that name it."""


def votes_of(samples: Samples) -> Votes:
    """Count the VM types that throughput samples name."""
    votes: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(Counter))
    rows, names = samples.rows, list(samples.names)
    rows = rows[np.isin(rows["metric"], [METRICS.index(name) for name in THROUGHPUT])]
    for end in ("src", "dst"):
        keys = [rows[name].astype(np.int64) for name in (end, "source", f"{end}_vm")]
        shape = (len(names),) * len(keys)
        unique, counts = np.unique(np.ravel_multi_index(keys, shape), return_counts=True)
        for region, source, vm, count in zip(*np.unravel_index(unique, shape), counts, strict=True):
            votes[names[region]][names[source]][names[vm]] += int(count)
    return votes


def taken_with(samples: Samples, sites: Mapping[str, Site]) -> Bools:
    """Mark the samples taken with the VM types of sites, the first of their names."""
    plain = NameTable()
    sampled = plain.numbers(map(plain_name, samples.names))
    assumed = plain.numbers(["", *(site.vm_type.partition(":")[2] for site in sites.values())])
    fits = np.ones(len(samples), np.bool_)
    for end in ("src", "dst"):
        vm = sampled[samples.rows[f"{end}_vm"]]
        fits &= (vm == 0) | (vm == assumed[samples.rows[end]])
    return fits


def vm_type_of(region: str, votes: Votes, catalogue: Catalogue) -> str | None:
    """Return the VM type of the catalogue that most throughput samples of a region name.

    Those of the own prober, where it has measured there; else each source has one vote.
    """
    of_region = votes.get(region, {})
    if OWN in of_region:
        of_region = {OWN: of_region[OWN]}
    provider = region.partition(":")[0]
    picks = []
    for of_source in of_region.values():
        named: Counter[str] = Counter()  # of names that are written in several ways
        for name, count in of_source.items():
            if name and (vm_type := f"{provider}:{plain_name(name)}") in catalogue.vm_types:
                named[vm_type] += count
        if named:
            picks.append(max(named, key=lambda name: (named[name], name)))
    return max(picks, key=lambda name: (picks.count(name), name), default=None)


def plain_name(vm_name: str) -> str:
    """Return the name that catalogues give a VM type, without a provider or Azure's prefix."""
    return vm_name.rpartition(":")[2].removeprefix("Standard_")

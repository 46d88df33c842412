"""Which VM types samples were taken with, and which one most samples of a region name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.link import Site
from probes.estimation.arrays.groups import Bools
from probes.estimation.arrays.sample_table import NameNumbers, Rows, SampleTable
from probes.samples import OWN


class AssumedTypes:
    """Tells throughput samples that were taken with the VM types assumed.

    Parameters
    ----------
    table : SampleTable
    sites : mapping
    """

    def __init__(self, table: SampleTable, sites: Mapping[str, Site]) -> None:
        plain = NameNumbers()
        plain[""]
        self._taken_with = np.array(
            [plain[plain_name(vm)] if vm else -1 for vm in table.vms] + [-1]
        )
        types = (site.vm_type.partition(":")[2] for site in sites.values())
        self._assumed = np.array([plain[name] for name in types] + [-1])

    def of(self, rows: Rows) -> Bools:
        """Return which of some throughput samples were taken with these."""
        fits = np.ones(len(rows), np.bool_)
        for end in ("src", "dst"):
            vm = self._taken_with[rows[f"{end}_vm"]]
            fits &= (vm < 0) | (vm == self._assumed[rows[end]])
        return fits


def vm_type_of(
    region: str, votes: Mapping[str, Mapping[str, Mapping[str, int]]], catalogue: Catalogue
) -> str | None:
    """Return the VM type of the catalogue that most throughput samples of a region name.

    Those of the own prober, where it has measured there; else each source has one vote.

    Parameters
    ----------
    region : str
    votes : mapping
        As :meth:`.SampleTable.votes` returns them.
    catalogue : Catalogue
    """
    of_region = votes.get(region, {})
    if OWN in of_region:
        of_region = {OWN: of_region[OWN]}
    provider = region.partition(":")[0]
    known: dict[str, dict[str, int]] = {}
    for source, of_source in of_region.items():
        named: Counter[str] = Counter()  # of names that are written in several ways
        for name, count in of_source.items():
            if name and (vm_type := f"{provider}:{plain_name(name)}") in catalogue.vm_types:
                named[vm_type] += count
        if named:
            known[source] = named
    if not known:
        return None
    picks = [max(of, key=lambda name: (of[name], name)) for of in known.values()]
    return max(picks, key=lambda name: (picks.count(name), name))


def plain_name(vm_name: str) -> str:
    """Return the name that catalogues give a VM type, without a provider or Azure's prefix."""
    return vm_name.rpartition(":")[2].removeprefix("Standard_")


def is_of_type(sampled: str, assumed_id: str) -> bool:
    """Whether a sample that names a VM type, or none, was taken with the one assumed."""
    return not sampled or plain_name(sampled) == assumed_id.partition(":")[2]

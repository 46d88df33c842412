"""Options of importing a file, names of regions as files write them, and rows of readers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from planner.model.catalogue import Hosts
from planner.model.errors import FormatError, InputError
from planner.model.estimate import AddressKind
from probes.metrics import Metric
from probes.samples import Sample, SkippedRow

ImportedRow: TypeAlias = Sample | SkippedRow

BAD_REGION = "src or dst is not provider:region"
SAME_REGION = "src and dst are the same region"

_REGION = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}:[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# gcp:europe-west6-a is zone a of europe-west6; aws:us-east-1a is zone a of us-east-1. Azure
# numbers its zones per subscription; PerfKitBenchmarker writes azure:eastus-1. All its regions are
# named for a direction, and a site of a user's own may be azure:place-1.
_GCP_ZONE = re.compile(r"(gcp:[a-z0-9-]+\d)-([a-z])")
_AZURE_ZONE = re.compile(
    r"(azure:(?=[a-z]*(?:north|south|east|west|central|usgov))[a-z]+\d?)-([1-3])"
)
_AWS_ZONE = re.compile(r"(aws:[a-z]{2}(?:-[a-z]+)+-\d)([a-z])")


@lru_cache(65_536)  # a file of a million rows repeats a hundred names
def split(name: str) -> tuple[str, str] | None:
    """Split a name into region id and zone; the zone is ``""`` where none is named."""
    stripped = name.strip()
    for zone in (_GCP_ZONE, _AWS_ZONE, _AZURE_ZONE):
        if match := zone.fullmatch(stripped):
            return match[1], match[2]
    return (stripped, "") if _REGION.fullmatch(stripped) else None


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Statements of a user about a file, beyond its format.

    Attributes
    ----------
    src, dst : str
        Region ids, with or without a zone. Needed for formats whose files name no regions, and for
        ``blackbox`` where its series have no labels ``src`` and ``dst``; the other formats name
        them row by row and ignore these. For ``iperf3``, ``src`` is the client's region, whichever
        way the data flowed.
    src_vm, dst_vm : str
        VM type names, for files that name none.
    measured_at_s : float | None
        Seconds since 1970 (UTC), for files that carry no time.
    connections : int | None
        Parallel connections, for ``csv`` where the file does not contain it.
    duration_s : float | None
        Length of each test in seconds, for ``csv`` where the file does not contain it.
    tiers : tuple[str, ...]
        Network tiers of Skyplane files to keep; a row is kept if both of its ends are in it.
    force : bool
        Keep readable rows that are not to be trusted: contaminated rows of a latency file, a last
        line that may be cut off, paced tests, tests of several hosts in one file.
    address : AddressKind | None
        Kind of address that it was measured over; no format states it.
    columns : mapping
        For ``csv``: known column names to the ones that the file has instead; for answers of
        Prometheus, to the labels of its series.
    provider : str
        For tables and graphs: the provider of regions that are written without one.
    metric : str
        The column name of the figure of a CSV file that is a matrix of it, or of a time series.
    hosts : Hosts | None
        Whether the hosts' TCP windows were raised, where the file does not say.
    named : callable
        For tables: the id of a region by another name, as on bills and portals.
    name : str
        Name of the file in error messages.
    """

    src: str = ""
    dst: str = ""
    src_vm: str = ""
    dst_vm: str = ""
    measured_at_s: float | None = None
    connections: int | None = None
    duration_s: float | None = None
    tiers: tuple[str, ...] = ("PREMIUM",)
    force: bool = False
    address: AddressKind | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    provider: str = ""
    metric: str = ""
    hosts: Hosts | None = None
    named: Callable[[str], str] = str
    name: str = "input"

    def start_s(self, of_file: float | None = None) -> float:
        """Return the start of a measurement: the file's own time if it has one, else the stated.

        Raises :class:`InputError` if neither is there: a sample without a time could not be aged.
        """
        if of_file is not None:
            return of_file
        if self.measured_at_s is None:
            problem = f"is needed, because {self.name} does not say when it was measured"
            remedy = "Give the time of the measurement, such as --measured-at 2022-01-15T12:00Z."
            raise InputError("--measured-at", problem, remedy=remedy)
        return self.measured_at_s

    def ends(self, what: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """Split the regions that were stated for a file that names none.

        Raises :class:`InputError` if one is missing or not ``provider:region``.
        """
        ends = []
        for option, region in (("--src", self.src), ("--dst", self.dst)):
            if not region:
                problem = f"is needed, because {self.name} is {what}, which names no regions"
                remedy = f"Say {option} provider:region, such as {option} aws:us-east-1."
                raise InputError(option, problem, remedy=remedy)
            if (end := split(region)) is None:
                problem, remedy = "is not provider:region", "For example: aws:us-east-1."
                raise InputError(option, problem, value=region, remedy=remedy)
            ends.append(end)
        return ends[0], ends[1]

    def one_host(self, known: str, found: str, line: int) -> str:
        """Return the one host that a file's tests are of, or refuse a file with several."""
        if known and found and known != found and not self.force:
            problem = f"holds tests of several hosts ({known}; line {line}: {found})"
            remedy = "Import one file per pair of regions; --force if both are the same region."
            raise FormatError(self.name, f"{problem}, but one --dst was stated", remedy=remedy)
        return known or found

    def sample(
        self,
        metric: Metric,
        value: float,
        at_s: float,
        tool: str,
        detail: Mapping[str, object],
        *,
        reverse: bool = False,
        **more: Any,
    ) -> Sample:
        """Return a sample between the regions that were stated.

        The time is in seconds since 1970 (UTC), and the tool's version follows its name. With
        `reverse`, data flowed from ``dst`` to ``src``; `more` are further fields of the sample.
        Raises :class:`InputError` if a region is missing or not ``provider:region``.
        """
        stated = zip(self.ends(tool.partition(" ")[0]), (self.src_vm, self.dst_vm), strict=True)
        src, dst = reversed([*stated]) if reverse else stated
        return Sample(
            src[0][0],
            dst[0][0],
            metric,
            value,
            at_s,
            tool,
            src_zone=src[0][1],
            dst_zone=dst[0][1],
            src_vm=src[1],
            dst_vm=dst[1],
            detail=json.dumps(detail),
            **more,
        )

"""Options of importing a file, and what readers return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from planner.model.errors import InputError
from planner.model.estimate import AddressKind
from probes.importers.endpoints import stated
from probes.samples import Metric, Sample, Skipped

ImportedRow: TypeAlias = Sample | Skipped


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What a user states about a file beside its format.

    Attributes
    ----------
    src, dst : str
        Region ids, with or without a zone. Needed for formats whose files name no regions, and for
        ``blackbox`` where its series have no labels ``src`` and ``dst``; the other formats name
        them row by row and ignore these. For
        ``iperf3``, ``src`` is where the client ran, whichever way the data flowed.
    src_vm, dst_vm : str
        VM type names, for files that name none.
    measured_at_s : float | None
        Seconds since 1970 (UTC), for files that carry no time.
    connections : int | None
        Parallel connections, for ``nuttcp`` and ``csv`` where the file does not contain it.
    duration_s : float | None
        Length of each test in seconds, for ``csv`` where the file does not contain it.
    tiers : tuple[str, ...]
        Network tiers of Skyplane files to keep; a row is kept if both of its ends are in it.
    force : bool
        Keep what is readable but not to be trusted: contaminated rows of a latency file, a last
        line that may be cut off, paced tests, tests of several hosts in one file.
    address : AddressKind | None
        Over which kind of address it was measured; no format says so itself.
    name : str
        What error messages call the file.
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
    name: str = "input"

    def start_s(self, found: float | None = None) -> float:
        """Start of a measurement: the file's own time if it has one, else the stated one.

        Raises
        ------
        InputError
            If neither is there: a sample without a time could not be aged.
        """
        if found is not None:
            return found
        if self.measured_at_s is None:
            raise InputError(
                "--measured-at",
                f"is needed, because {self.name} does not say when it was measured",
                remedy="Give the time of the measurement, such as --measured-at 2022-01-15T12:00Z.",
            )
        return self.measured_at_s

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

        Parameters
        ----------
        at_s : float
            Seconds since 1970 (UTC).
        tool : str
            Its name, with its version after a space.
        reverse : bool
            Whether data flowed from ``dst`` to ``src``.
        **more
            Further fields of the sample.

        Raises
        ------
        InputError
            If a region is missing or not ``provider:region``.
        """
        name = tool.partition(" ")[0]
        ends = [
            (*stated(field, region, self.name, name), vm)
            for field, region, vm in (
                ("--src", self.src, self.src_vm),
                ("--dst", self.dst, self.dst_vm),
            )
        ]
        src, dst = reversed(ends) if reverse else ends
        return Sample(
            src[0],
            dst[0],
            metric,
            value,
            at_s,
            tool,
            src_zone=src[1],
            dst_zone=dst[1],
            src_vm=src[2],
            dst_vm=dst[2],
            detail=json.dumps(detail),
            **more,
        )

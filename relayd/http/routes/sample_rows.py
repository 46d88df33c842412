"""From rows that a client sent to samples, each judged by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from planner.model.errors import InputError
from probes.importers.limits import OF_ONE_VM, fault
from probes.importers.options import split
from probes.samples import Quarantined, Sample
from relayd.http.models.measuring import SampleGiven
from relayd.http.problems import ProblemError, invalid
from relayd.http.reading import read_json

MOST_REJECTIONS = 100
MOST_LINE_BYTES = 64_000
MOST_DETAIL = 4_000


class SampleRows:
    """Collects the samples of one request.

    Parameters
    ----------
    is_declared : callable
        Whether a region is known to the operator; samples of others are rejected.
    fault_of : callable
        Why a sample can't be a measurement; None if it can.

    Attributes
    ----------
    samples : list of Sample
    apart : list of Quarantined
        Samples that can't be measurements.
    quarantine : list of dict
        Row and reason of the first hundred of these.
    rejected : int
    rejections : list of dict
        Row and reason of the first hundred.
    """

    def __init__(
        self, is_declared: Callable[[str], bool], fault_of: Callable[[Sample], str | None]
    ) -> None:
        self._is_declared = is_declared
        self._fault_of = fault_of
        self.apart: list[Quarantined] = []
        self.quarantine: list[dict[str, Any]] = []
        self.samples: list[Sample] = []
        self.rejected = 0
        self.rejections: list[dict[str, Any]] = []
        self._row = 0

    def add_lines(self, lines: list[bytes]) -> None:
        """Read lines of NDJSON; empty ones don't count as wrong."""
        for line in lines:
            self._row += 1
            if not line.strip():
                continue
            if len(line) > MOST_LINE_BYTES:
                self._reject(f"the line is longer than {MOST_LINE_BYTES} bytes")
                continue
            try:
                content = read_json(line, "the line")
            except ProblemError as error:
                self._reject(str(error))
            else:
                self._judge(content)

    def add(self, contents: list[Any]) -> None:
        """Take rows that are read already."""
        for content in contents:
            self._row += 1
            self._judge(content)

    def _judge(self, content: Any) -> None:
        try:
            given = SampleGiven.model_validate(content, strict=True)
        except ValidationError as error:
            self._reject(str(invalid(error)))
            return
        try:
            sample = self._sample(given)
        except InputError as error:
            self._reject(str(error))
            return
        if (reason := self._fault_of(sample)) is None:
            self.samples.append(sample)
            return
        self.apart.append(Quarantined(sample, reason))
        if len(self.quarantine) < MOST_REJECTIONS:
            self.quarantine.append({"row": self._row, "reason": reason})

    def _sample(self, given: SampleGiven) -> Sample:
        src, dst = split(given.src), split(given.dst)
        for field, name, found in (("src", given.src, src), ("dst", given.dst, dst)):
            if found is None:
                raise InputError(field, "is not provider:region", value=name)
            if not self._is_declared(found[0]):
                raise InputError(
                    field,
                    "is a region that nobody has declared",
                    value=name,
                    remedy="The operator of the service declares regions: in a catalogue file, in "
                    "its fleet file, or by `relayd import` on its store.",
                )
        assert src
        assert dst
        if (src[0] == dst[0]) is not (given.metric in OF_ONE_VM):
            of_one = "names one region as both" if src[0] == dst[0] else "must have one region as"
            raise InputError("dst", f"{of_one} ends for {given.metric}", value=given.dst)
        if problem := fault(given.metric, given.value, "value"):
            raise InputError("value", problem.removeprefix("value "), value=given.value)
        detail = json.dumps(given.detail, sort_keys=True) if given.detail else ""
        if len(detail) > MOST_DETAIL:
            raise InputError("detail", f"is longer than {MOST_DETAIL} characters")
        return Sample(
            src[0],
            dst[0],
            given.metric,
            given.value,
            given.measured_at_s,
            given.tool,
            given.connections,
            given.duration_s,
            given.warmed_up,
            given.src_zone or src[1],
            given.dst_zone or dst[1],
            given.src_vm,
            given.dst_vm,
            detail,
            given.address,
            given.new_level,
            given.intervals,
        )

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        if len(self.rejections) < MOST_REJECTIONS:
            self.rejections.append({"row": self._row, "reason": reason})

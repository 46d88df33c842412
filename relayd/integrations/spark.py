"""Spark: what a job shuffled between regions, from its event log, and where to reduce it.

Executors say their region by an environment variable that Spark itself passes on,
``SPARK_EXECUTOR_ATTRIBUTE_REGION=aws:us-east-1``, so that neither job nor ``spark-submit`` changes.
:func:`read_shuffles` reads the log that the job left, :func:`shuffle_plan` says how many partitions
each region should reduce, and :func:`cores_by_region` how many cores make Spark do so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.fields.json_text import read_json
from planner.model.errors import FormatError, InputError, not_installed
from planner.model.units import BYTES_PER_GB
from relayd.client.blocking import RemoteWan
from relayd.integrations.shuffles import PlacedShuffle, place_shuffle
from relayd.sources.wan import Wan

ATTRIBUTE = "REGION"
"""Of an executor, as Spark logs ``SPARK_EXECUTOR_ATTRIBUTE_REGION`` of its environment."""


@dataclass(frozen=True, slots=True)
class SparkShuffle:
    """The output of one stage of a job, and the spread of its readers.

    Attributes
    ----------
    stage : int
        That wrote it.
    name : str
        Of that stage.
    partitions : int
        That its readers were, as Spark coalesced them.
    input_gb : dict
        By region, what was written there: compressed, as it goes over the network.
    read_in : dict
        By region, how many partitions were read there.
    read_s : float
        From when its readers were submitted until the last had ended, with all that they did.
    read_gb : dict
        By region, what its readers read there, of this shuffle and others.
    """

    stage: int
    name: str
    partitions: int
    input_gb: dict[str, float]
    read_in: dict[str, int]
    read_s: float
    read_gb: dict[str, float] = field(default_factory=dict)

    @property
    def volume_gb(self) -> float:
        """Of all regions together."""
        return sum(self.input_gb.values())


def read_shuffles(
    event_log: str | Path | list[bytes], regions: Mapping[str, str] | None = None
) -> list[SparkShuffle]:
    """Return the shuffles that a job's event log tells of, in the order of their stages.

    Raises InputError if there is no log, or an executor that wrote or read is in no region;
    FormatError if a file is not an event log, or compressed otherwise.

    Parameters
    ----------
    event_log : str or Path or list of bytes
        A file, or the folder of a rolling log, as text or compressed with zstd, Spark's default; or
        the lines of a log.
    regions : mapping, optional
        Region by host, for executors that do not say theirs.
    """
    log = _Log(regions or {})
    for part in [event_log] if isinstance(event_log, list) else _files(Path(event_log)):
        for event in _events(part):
            try:
                log.take(event)
            except (KeyError, TypeError, AttributeError) as error:
                raise FormatError(_name(part), f"has an event without {error}") from None
    return log.shuffles()


def shuffle_plan(
    shuffle: SparkShuffle,
    *,
    partitions: int | None = None,
    wan: Wan | RemoteWan | None = None,
    **question: Any,
) -> PlacedShuffle:
    """Return a region for each partition of a shuffle like one that was logged.

    Raises InputError, InfeasibleError, DataError as of :meth:`relayd.Wan.place_reduce`.

    Parameters
    ----------
    shuffle : SparkShuffle
    partitions : int, optional
        As many as it had unless stated.
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    **question
        Further fields of :class:`~planner.placement.request.ReduceRequest`, such as ``budget_usd``,
        or ``connections`` of a VM (Spark opens ``spark.shuffle.io.numConnectionsPerPeer`` a peer).
    """
    wanted = shuffle.partitions if partitions is None else partitions
    return place_shuffle(wan, shuffle.input_gb, wanted, **question)


def cores_by_region(plan: PlacedShuffle, cores: int) -> dict[str, int]:
    """Divide cores among regions, so that tasks spread as planned.

    Spark gives a stage's tasks to free cores. With ``spark.shuffle.reduceLocality.enabled=false``
    nothing else decides.

    Raises InputError if there are fewer cores than regions that reduce.
    """
    counts = plan.partitions_in
    if cores < len(counts):
        problem = f"are fewer than the {len(counts)} regions that reduce"
        raise InputError("cores", problem, value=cores)
    share = cores / sum(counts.values())
    found = {region: max(1, int(count * share)) for region, count in counts.items()}
    while (rest := cores - sum(found.values())) != 0:
        step = 1 if rest > 0 else -1
        lacking = {r: step * (counts[r] * share - found[r]) for r in found if found[r] + step > 0}
        found[max(lacking, key=lacking.__getitem__)] += step
    return found


class _Log:
    """The stages in the events of a log, by number."""

    def __init__(self, regions: Mapping[str, str]) -> None:
        self._region_of_host = regions
        self._attributes: dict[str, dict[str, str]] = {}
        self._names: dict[int, str] = {}
        self._readers: defaultdict[int, list[int]] = defaultdict(list)
        self._ran_ms: dict[int, tuple[int, int]] = {}
        self._written: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._read: defaultdict[int, Counter[str]] = defaultdict(Counter)
        self._read_bytes: defaultdict[int, Counter[str]] = defaultdict(Counter)

    def take(self, event: dict[str, Any]) -> None:
        kind = event.get("Event")
        if kind == "SparkListenerExecutorAdded":
            attributes = event["Executor Info"].get("Attributes", {})
            self._attributes[event["Executor ID"]] = attributes
        elif kind == "SparkListenerStageCompleted":
            stage = event["Stage Info"]
            number, began_ms = stage["Stage ID"], stage["Submission Time"]
            self._names[number] = stage["Stage Name"]
            began_ms, _ = self._ran_ms.get(number, (began_ms, 0))  # of an earlier attempt
            self._ran_ms[number] = began_ms, stage["Completion Time"]
            for parent in stage["Parent IDs"]:
                self._readers[parent].append(number)
        elif kind == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success":
            stage, info = event["Stage ID"], event["Task Info"]
            if not (metrics := event.get("Task Metrics")):
                return
            if written := metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]:
                self._written[stage][self._region(info)] += written
            reads = metrics["Shuffle Read Metrics"]
            if reads["Remote Blocks Fetched"] + reads["Local Blocks Fetched"]:
                self._read[stage][self._region(info)] += 1
                read = reads["Remote Bytes Read"] + reads["Local Bytes Read"]
                self._read_bytes[stage][self._region(info)] += read

    def _region(self, info: dict[str, Any]) -> str:
        attributes = self._attributes.get(info["Executor ID"], {})
        region = attributes.get(ATTRIBUTE) or self._region_of_host.get(info["Host"])
        if not region:
            problem = "do not say where a host is"
            remedy = "Name it there, or start executors with SPARK_EXECUTOR_ATTRIBUTE_REGION."
            raise InputError("regions", problem, value=info["Host"], remedy=remedy)
        return str(region)

    def shuffles(self) -> list[SparkShuffle]:
        found = []
        for stage, written in sorted(self._written.items()):
            readers = [one for one in self._readers[stage] if one in self._read]
            read_in = dict(sum((self._read[one] for one in readers), Counter[str]()))
            if read_in:
                input_gb = {region: size / BYTES_PER_GB for region, size in written.items()}
                partitions = sum(read_in.values())
                name = self._names.get(stage, "")
                began_ms, ended_ms = zip(*(self._ran_ms[one] for one in readers), strict=True)
                read_s = (max(ended_ms) - min(began_ms)) / 1000
                read = sum((self._read_bytes[one] for one in readers), Counter[str]())
                read_gb = {region: size / BYTES_PER_GB for region, size in read.items()}
                figures = (partitions, input_gb, read_in, read_s, read_gb)
                found.append(SparkShuffle(stage, name, *figures))
        return found


def _files(place: Path) -> list[Path]:
    """Return the files of a log in their order."""
    if place.is_file():
        return [place]
    numbered = {
        int(match[1]): file
        for file in place.glob("events_*")
        if (match := re.match(r"events_(\d+)_", file.name))
    }
    if not numbered:
        problem = "is no event log of Spark"
        remedy = (
            "Run the job with --conf spark.eventLog.enabled=true, and name what it left in "
            "spark.eventLog.dir."
        )
        raise InputError("event_log", problem, value=str(place), remedy=remedy)
    return [numbered[number] for number in sorted(numbered)]


def _name(part: Path | list[bytes]) -> str:
    return "event_log" if isinstance(part, list) else part.name


def _events(part: Path | list[bytes]) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        lines: Any = part if isinstance(part, list) else stack.enter_context(part.open("rb"))
        if _name(part).endswith((".zstd", ".zst")):
            try:
                import pyarrow as pa
            except ImportError:
                raise not_installed("pyarrow", "spark", f"read {_name(part)}") from None
            text = stack.enter_context(pa.CompressedInputStream(lines, "zstd"))
            lines = text.read().splitlines()
        try:
            for line in lines:
                event = read_json(line)
                if isinstance(event, dict):
                    yield event
        except ValueError:
            problem = "is not text of events; of compressed logs, those by zstd are read"
            raise FormatError(_name(part), problem) from None

"""Copying files from one place of fsspec to another, through this machine."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import uuid4

from planner.model.errors import InfeasibleError, InputError, RelaydError, not_installed
from planner.model.units import BYTES_PER_GB, duration_text, gbps_text, usd_text, volume_text
from planner.transfer.plan import Plan
from relayd.client.blocking import RemoteWan
from relayd.sources.opening import opened
from relayd.sources.wan import Wan

DEFAULT_STREAMS = 8
PIECE_BYTES = 8_000_000
"""That are read at a time: a part of a multipart upload is at least 5 MiB."""
LABEL = "relayd.fs.copy"
REPORT_EVERY_S = 5.0
LAST_WORD_S = 10.0
"""Longest time that the end of a copy waits for the last report."""
_MOST_PROBLEM = 200
STORES_DIFFER = (
    "These are rates between VMs: an object store, or this machine's disk, may be slower."
)


@dataclass(frozen=True, slots=True)
class CopyForecast:
    """Predicted price and time of a copy.

    Attributes
    ----------
    files : int
    volume_gb : float
    links : tuple of Plan
        Of the links that the data takes, source to this machine and on; none within one region.
    """

    files: int
    volume_gb: float
    links: tuple[Plan, ...]

    @property
    def egress_usd(self) -> float:
        """Egress fees of all links together."""
        return sum(plan.cost_usd.egress for plan in self.links)

    @property
    def throughput_gbps(self) -> float | None:
        """Rate of the slowest link; None within one region, where nothing is known of it."""
        return min((plan.throughput_gbps for plan in self.links), default=None)

    @property
    def throughput_gbps_low(self) -> float | None:
        """Its low bound."""
        return min((plan.throughput_gbps_low for plan in self.links), default=None)

    @property
    def throughput_gbps_high(self) -> float | None:
        """Its high bound."""
        return min((plan.throughput_gbps_high for plan in self.links), default=None)

    @property
    def duration_s(self) -> float | None:
        """Time of the slowest link."""
        return max((plan.duration_s for plan in self.links), default=None)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions that the data passes through; none within one region."""
        ends = [(link.paths[0].regions[0], link.paths[0].regions[-1]) for link in self.links]
        return (*(src for src, _ in ends[:1]), *(dst for _, dst in ends))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the figures."""
        told = dict.fromkeys(text for plan in self.links for text in plan.warnings)
        return (*told, STORES_DIFFER)

    def __str__(self) -> str:
        """Say price and time in a sentence."""
        what = f"{self.files:,} file{'s' if self.files != 1 else ''}, {volume_text(self.volume_gb)}"
        if self.duration_s is None:
            return f"{what} within one region: no egress fee, and no forecast of the time."
        route = " and on ".join(f"{src} -> {dst}" for src, dst in pairwise(self.regions))
        rates = (self.throughput_gbps, self.throughput_gbps_low, self.throughput_gbps_high)
        rate, low, high = (gbps_text(gbps or 0.0) for gbps in rates)
        return (
            f"{what}, {route}: {usd_text(self.egress_usd)} USD of egress fees, "
            f"{duration_text(self.duration_s)} at {rate} Gbit/s ({low} to {high})."
        )


Confirm = Callable[[CopyForecast], bool]


@dataclass(frozen=True, slots=True)
class CopyResult:
    """A copy that ended.

    Attributes
    ----------
    forecast : CopyForecast
        That was told before.
    files : int
    sent_gb : float
    duration_s : float
    """

    forecast: CopyForecast
    files: int
    sent_gb: float
    duration_s: float


class _File(NamedTuple):
    source: str
    target: str
    size: int


class _Job(NamedTuple):
    source: Any
    target: Any
    files: list[_File]


def forecast(
    source: str,
    target: str,
    *,
    src: str,
    dst: str,
    here: str | None = None,
    streams: int = DEFAULT_STREAMS,
    wan: Wan | RemoteWan | None = None,
    source_options: Mapping[str, Any] = {},
    target_options: Mapping[str, Any] = {},
) -> CopyForecast:
    """Predict price and time of a copy; nothing is copied.

    Parameters
    ----------
    source, target : str
        Addresses as fsspec has them, such as ``s3://bucket/folder`` and ``gs://other/folder``: of a
        file, or of a folder with all that is in it.
    src, dst : str
        Regions of the two, ids or aliases.
    here : str, optional
        Region of this machine, through which the data passes; that of the source unless stated.
    streams : int
        Files that are copied at a time.
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    source_options, target_options : mapping
        For fsspec, such as credentials.

    Raises
    ------
    InputError
        If there is no such file, fsspec lacks a package for an address, or a region is unknown.
    """
    job = _job(source, target, source_options, target_options)
    return _forecast(job, src, dst, here, streams, wan)


def copy(
    source: str,
    target: str,
    *,
    src: str,
    dst: str,
    here: str | None = None,
    streams: int = DEFAULT_STREAMS,
    wan: Wan | RemoteWan | None = None,
    source_options: Mapping[str, Any] = {},
    target_options: Mapping[str, Any] = {},
    budget_usd: float | None = None,
    confirm: Confirm | None = None,
    label: str = LABEL,
) -> CopyResult | None:
    """Say price and time of a copy, ask, and copy.

    Where `wan` is a service and its token has the scope ``ingest``, the copy is one of its
    transfers in flight; without reports it goes on. A file of the target appears whole or not at
    all, where its file system can do that (object stores and local files can). What was there under
    its name is replaced.

    Parameters
    ----------
    source, target, src, dst, here, streams, wan, source_options, target_options
        As of :func:`forecast`.
    budget_usd : float, optional
        Most egress fees that the forecast may have.
    confirm : callable, optional
        Takes the forecast and returns whether to copy. Without it, price and time are told on
        standard error, and a terminal is asked; without a terminal, a budget is consent.
    label : str
        What the service calls it.

    Returns
    -------
    CopyResult | None
        None if it was not confirmed.

    Raises
    ------
    InputError
        As of :func:`forecast`; if there is no terminal to ask; or if a file changed meanwhile.
    InfeasibleError
        If the forecast is over the budget.
    """
    job = _job(source, target, source_options, target_options)
    told = _forecast(job, src, dst, here, streams, wan)
    if budget_usd is not None and told.egress_usd > budget_usd:
        raise InfeasibleError(
            f"The copy costs {usd_text(told.egress_usd)} USD of egress fees, which is over the "
            f"budget of {usd_text(budget_usd)} USD",
            "Copy less, or from a nearer place.",
        )
    if not (confirm(told) if confirm else _agreed(told, asks=budget_usd is None)):
        return None
    began_s = time.monotonic()
    with (
        reported(wan, told, label) as moved,
        ThreadPoolExecutor(streams, thread_name_prefix="copy") as threads,
    ):
        copies = [threads.submit(_copy, job, file, moved) for file in job.files]
        for rest in wait(copies, return_when=FIRST_EXCEPTION).not_done:
            rest.cancel()
        sent_gb = sum(one.result() for one in copies) / BYTES_PER_GB
    return CopyResult(told, len(job.files), sent_gb, time.monotonic() - began_s)


def _job(
    source: str, target: str, source_options: Mapping[str, Any], target_options: Mapping[str, Any]
) -> _Job:
    reads, root = _place(source, "source", source_options)
    writes, there = _place(target, "target", target_options)
    if reads.isfile(root):
        return _Job(reads, writes, [_File(root, there, int(reads.size(root)))])
    found = reads.find(root, detail=True)
    if not found:
        raise InputError("source", "has no files", value=source, remedy="Is it spelt rightly?")
    stem, there = root.rstrip("/") + "/", there.rstrip("/")
    files = [
        _File(path, f"{there}/{path.removeprefix(stem)}", int(entry["size"] or 0))
        for path, entry in sorted(found.items())
    ]
    return _Job(reads, writes, files)


def _place(address: str, field: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise not_installed("fsspec", "fsspec", f"open {field}") from None
    try:
        place, path = url_to_fs(address, **options)
    except (ValueError, ImportError) as error:
        remedy = "Install the package that fsspec names for this protocol."
        problem = f"is no place of fsspec ({error})"
        raise InputError(field, problem, value=address, remedy=remedy) from None
    return place, str(path)


def _forecast(
    job: _Job, src: str, dst: str, here: str | None, streams: int, wan: Wan | RemoteWan | None
) -> CopyForecast:
    if streams < 1:
        raise InputError("streams", "must be at least 1", value=streams)
    volume_gb = sum(file.size for file in job.files) / BYTES_PER_GB
    asked: dict[str, Any] = {
        "relays": "none",
        "vms": 1,
        "connections": min(streams, len(job.files)),
    }
    with opened(wan) as known:
        plans = [
            known.plan(one, other, volume_gb=volume_gb, **asked)
            for one, other in pairwise((src, here or src, dst))
            if one != other and volume_gb > 0
        ]
    return CopyForecast(len(job.files), volume_gb, tuple(plans))


def _agreed(told: CopyForecast, *, asks: bool) -> bool:
    """Tell a forecast on standard error, and ask on a terminal."""
    sys.stderr.write("\n".join((str(told), *told.warnings, "")))
    if not asks:
        return True
    if not sys.stdin.isatty():
        problem = "is needed, because there is no terminal to ask"
        raise InputError("confirm", problem, remedy="State budget_usd, or pass confirm.")
    sys.stderr.write("Copy? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _copy(job: _Job, file: _File, moved: Callable[[int], None]) -> int:
    """Copy one file, and say how many bytes were moved as they are; returns its size."""
    if parent := file.target.rpartition("/")[0]:
        job.target.makedirs(parent, exist_ok=True)
    writes = job.target.open(file.target, "wb", autocommit=False)
    try:
        with job.source.open(file.source, "rb") as reads:
            while piece := reads.read(PIECE_BYTES):
                writes.write(piece)
                moved(len(piece))
        sent = int(writes.tell())
        writes.close()
    except BaseException:
        writes.discard()
        raise
    if sent != file.size:
        writes.discard()
        raise InputError(
            "source",
            f"changed while it was copied: {sent:,} bytes came, not {file.size:,}",
            value=file.source,
            remedy="Copy it again when nothing writes to it.",
        )
    writes.commit()
    return sent


# --- reports ------------------------------------------------------------------------------------

Moved = Callable[[int], None]
"""Is called with the bytes of each piece that was written."""


@contextmanager
def reported(wan: Wan | RemoteWan | None, forecast: CopyForecast, label: str) -> Iterator[Moved]:
    """Report what is copied inside, if `wan` is a service and the copy leaves its region."""
    regions = forecast.regions
    if not isinstance(wan, RemoteWan) or len(set(regions)) < len(regions) or not regions:
        yield lambda _: None
        return
    reports = _Reports(wan, forecast, label)
    try:
        yield reports.moved
    except BaseException as error:
        is_cancelled = isinstance(error, KeyboardInterrupt)
        problem = "it was interrupted" if is_cancelled else str(error) or type(error).__name__
        reports.end("cancelled" if is_cancelled else "failed", problem)
        raise
    reports.end("finished")


class _Reports:
    """Tells a service how far a copy is, in a thread of its own."""

    def __init__(self, wan: RemoteWan, forecast: CopyForecast, label: str) -> None:
        self._wan, self._forecast, self._label = wan, forecast, label
        self._id = uuid4().hex[:16]
        self._bytes = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._end: dict[str, Any] = {}
        self._is_silenced = False
        self._thread = threading.Thread(target=self._run, name="copy-reports", daemon=True)
        self._thread.start()

    def moved(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    def end(self, state: str, problem: str = "") -> None:
        self._end = {"state": state}
        if state != "finished":
            self._end |= {"problem": problem[:_MOST_PROBLEM], "moved_gb": self._moved_gb}
        self._over.set()
        self._thread.join(LAST_WORD_S)

    @property
    def _moved_gb(self) -> float:
        return min(self._bytes / BYTES_PER_GB, self._forecast.volume_gb)

    def _run(self) -> None:
        has_begun = self._is_taken(self._begin)
        while not self._over.wait(REPORT_EVERY_S):
            has_begun = has_begun or self._is_taken(self._begin)
            if has_begun:
                self._is_taken(lambda: self._wan.report_transfer(self._id, self._moved_gb))
        if has_begun or self._is_taken(self._begin):
            self._is_taken(lambda: self._wan.end_transfer(self._id, **self._end))

    def _begin(self) -> object:
        told, links = self._forecast, self._forecast.links
        figures = {
            "paths": [{"regions": told.regions, "throughput_gbps": told.throughput_gbps}],
            "throughput_gbps": told.throughput_gbps,
            "throughput_gbps_low": told.throughput_gbps_low,
            "duration_s": told.duration_s,
            "cost_usd": sum(link.cost_usd.total for link in links),
        }
        return self._wan.begin_transfer(
            told.regions[0],
            told.regions[-1],
            volume_gb=told.volume_gb,
            id=self._id,
            label=self._label,
            plan=links[0] if len(links) == 1 else figures,
        )

    def _is_taken(self, call: Callable[[], object]) -> bool:
        """Make a call and return whether the service took it; say once why it did not."""
        try:
            call()
        except RelaydError as error:
            if not self._is_silenced:
                self._is_silenced = True
                sys.stderr.write(f"The copy goes on, but can't be reported: {error}\n")
            return False
        return True

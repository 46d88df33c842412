"""Copying files from one place of fsspec to another, through this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.model.errors import InfeasibleError, InputError, not_installed
from planner.model.units import BYTES_PER_GB, usd_text
from relayd.fs.forecasting import CopyForecast, forecast_of
from relayd.fs.reporting import LABEL, reported
from relayd.sources.opening import opened
from relayd.sources.wan import Wan

if TYPE_CHECKING:
    from relayd.client.blocking import RemoteWan

DEFAULT_STREAMS = 8
PIECE_BYTES = 8_000_000
"""That are read at a time: a part of a multipart upload is at least 5 MiB."""

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
    """Return what a copy would cost and take; nothing is copied.

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
    """Say what a copy costs and takes, ask, and copy.

    Where `wan` is a service, the copy is one of its transfers in flight. That needs a token with
    the scope ``ingest``; a service that does not take reports keeps no copy from going on.

    A file of the target appears whole or not at all, where its file system can do that (object
    stores and local files can). What was there under its name is replaced.

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
        As of :func:`forecast`; if there is nobody to ask; or if a file changed while it was copied.
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
    if not (confirm or _asking(budget_usd))(told):
        return None
    began_s = time.monotonic()
    with reported(wan, told, label) as moved:
        with ThreadPoolExecutor(streams, thread_name_prefix="copy") as threads:
            copies = [threads.submit(_copy, job, file, moved) for file in job.files]
            done, rest = wait(copies, return_when=FIRST_EXCEPTION)
            for one in rest:
                one.cancel()
        sent_gb = sum(one.result() for one in done) / BYTES_PER_GB
    return CopyResult(told, len(copies), sent_gb, time.monotonic() - began_s)


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
    stem = root.rstrip("/") + "/"
    files = [
        _File(path, f"{there.rstrip('/')}/{path.removeprefix(stem)}", int(entry["size"] or 0))
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
        raise InputError(
            field,
            f"is no place of fsspec ({error})",
            value=address,
            remedy="Install the package that fsspec names for this protocol.",
        ) from None
    return place, str(path)


def _forecast(
    job: _Job, src: str, dst: str, here: str | None, streams: int, wan: Wan | RemoteWan | None
) -> CopyForecast:
    if streams < 1:
        raise InputError("streams", "must be at least 1", value=streams)
    with opened(wan) as known:
        volume_gb = sum(file.size for file in job.files) / BYTES_PER_GB
        at_once = min(streams, len(job.files))
        return forecast_of(known, len(job.files), volume_gb, (src, here or src, dst), at_once)


def _asking(budget_usd: float | None) -> Confirm:
    def ask(told: CopyForecast) -> bool:
        sys.stderr.write("\n".join((str(told), *told.warnings, "")))
        if budget_usd is not None:
            return True
        if not sys.stdin.isatty():
            raise InputError(
                "confirm",
                "is needed, because there is no terminal to ask",
                remedy="State budget_usd, or pass confirm.",
            )
        sys.stderr.write("Copy? [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask


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
            remedy="Copy it again when nobody writes to it.",
        )
    writes.commit()
    return sent

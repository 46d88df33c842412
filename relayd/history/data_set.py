"""The samples of a folder of Parquet files, for replays and reports: no store is needed.

Rows that are no samples (see ``relayd import parquet``) are left out and counted. Files are read
one after the other, and what was read last stays in memory up to a limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import not_installed
from probes import samples
from probes.importers import limits
from probes.importers.endpoints import split
from probes.importers.parquet import NO_TOOL, TYPES, read_batches
from probes.samples import Metric, Samples, read_detail
from relayd.history.source import SampleHistory, SeriesSpan, Vote
from relayd.store.samples.columns import ROW, BothKinds, Columns, DetailedTest, Setup, by_address
from relayd.store.samples.data_set import files_of

if TYPE_CHECKING:
    import pyarrow

METRICS: tuple[Metric, ...] = get_args(Metric)
MOST_BYTES = 500_000_000
"""Of rows in memory beside those that are asked for."""
_OF_FILE = np.dtype([*ROW.descr, ("metric", "i1"), ("kind", "i1")])
_KINDS = {"": 0, "public": 1, "private": 2}
_WITHOUT_DETAIL = tuple(name for name in TYPES if name not in ("detail", "new_level", "intervals"))
_WAYS = ("tool", "src_zone", "dst_zone", "src_vm", "dst_vm")

Codes = NDArray[np.int64]


class _TimedFile(NamedTuple):
    path: Path
    first_s: float
    last_s: float


class DataSetHistory(SampleHistory):
    """The samples of a data set.

    Parameters
    ----------
    folder : Path

    Attributes
    ----------
    left_out : int
        Rows that are no samples.

    Raises
    ------
    InputError
        If pyarrow is not installed, or the folder holds no Parquet files.
    FormatError
        If a file is damaged, or lacks a column.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise not_installed("pyarrow", "parquet", "read Parquet") from None
        self._folder = folder
        self.regions: dict[int, str] = {}
        self.setups: dict[int, Setup] = {}
        self.left_out = 0
        # Whole texts, and regions with what is split off their names, by number.
        self._texts: dict[str, int] = {"": 0}
        self._region_ids: dict[str, int] = {}
        self._setup_ids: dict[tuple[int, ...], int] = {}
        self._read: OrderedDict[Path, NDArray[np.void]] = OrderedDict()
        self._spans: dict[tuple[int, int, int, int], SeriesSpan] = {}
        self._most_connections: dict[int, int] = {}
        self._since: dict[int, tuple[Codes, NDArray[np.float64]]] = {}
        self._files: list[_TimedFile] = []
        for path in files_of(folder):
            rows = self._rows_of_file(path)
            self._count(rows)
            if len(rows):
                self._files.append(_TimedFile(path, rows["at_s"].min(), rows["at_s"].max()))
        self._files.sort(key=lambda file: file.first_s)

    # ---- what replays and reports ask ----------------------------------------------------------

    def series(self) -> list[SeriesSpan]:
        """Return what there is."""
        return [self._spans[key] for key in sorted(self._spans)]

    def votes(self) -> tuple[Vote, ...]:
        """Return nothing: summaries are in no data set."""
        return ()

    def read(self, *, details: bool = False) -> Samples:  # noqa: ARG002 - without, for now
        """Return all samples, without what their tools said."""
        rows = np.concatenate([self._rows_of_file(file.path) for file in self._files])
        found = Samples(np.zeros(len(rows), samples.ROW))
        for end in ("src", "dst"):
            found.rows[end] = _by_number(self.regions, found.names)[rows[end]]
        for name in _WAYS:
            texts = {number: getattr(setup, name) for number, setup in self.setups.items()}
            found.rows[name] = _by_number(texts, found.names)[rows["setup"]]
        for name, column in (("metric", "metric"), ("address", "kind"), ("measured_at_s", "at_s")):
            found.rows[name] = rows[column]
        for name in ("value", "connections", "duration_s", "warmed_up"):
            found.rows[name] = rows[name]
        found.rows["id"] = np.arange(1, len(rows) + 1)
        return found

    def most_connections(self, metric: Metric) -> int:
        """Return the most connections of any sample of a metric; 0 if no sample states them."""
        return self._most_connections.get(METRICS.index(metric), 0)

    def between(
        self, metric: Metric, regions: Collection[int], begin_s: float, end_s: float
    ) -> NDArray[np.void]:
        """Return the samples among regions from one time until before another."""
        return _joined(list(self._parts(metric, regions, begin_s, end_s)))

    def before(
        self, metric: Metric, regions: Collection[int], before_s: float, most: int
    ) -> NDArray[np.void]:
        """Return of each link among regions the newest samples from before a time."""
        found = np.empty(0, ROW)
        for rows in self._parts(metric, regions, -np.inf, before_s):
            found = _newest(np.concatenate([found, rows]), most)
        return found

    def columns(self, metric: Metric, since_s: float | None) -> Columns:
        """Return all samples of a metric, or those since a time."""
        begin_s = -np.inf if since_s is None else since_s
        rows = _joined(list(self._parts(metric, self.regions, begin_s, np.inf)))
        order = np.lexsort((rows["at_s"], rows["dst"], rows["src"]))
        return Columns(metric, self.regions, self.setups, rows[order])

    def details(
        self, metric: Metric, since_s: float | None, *, steady: bool = False
    ) -> Iterator[DetailedTest]:
        """Yield samples whose tool said more, or those that kept their intervals."""
        import pyarrow.compute

        found: list[tuple[Any, ...]] = []
        for file in self._overlapping(-np.inf if since_s is None else since_s, np.inf):
            for _, batch in self._batches(file.path, tuple(TYPES)):
                rows, is_sample = self._rows_of(batch)
                wanted = is_sample & (rows["metric"] == METRICS.index(metric))
                wanted &= rows["at_s"] >= (-np.inf if since_s is None else since_s)
                if steady:
                    wanted &= ~_missing(batch, "intervals")
                places = np.flatnonzero(wanted)
                texts = _texts(batch, "detail").take(pyarrow.array(places)).to_pylist()
                found += [
                    (row["src"], row["dst"], row["at_s"], place, row, text or "")
                    for place, (row, text) in enumerate(
                        zip(rows[places], texts, strict=True), len(found)
                    )
                    if text or steady
                ]
        for src, dst, at_s, _, row, text in sorted(found, key=lambda one: one[:4]):
            yield DetailedTest(
                self.regions[int(src)],
                self.regions[int(dst)],
                float(at_s),
                float(row["value"]),
                float(row["duration_s"]),
                self.setups[int(row["setup"])],
                read_detail(text),
            )

    def address_kinds(self, metric: Metric, since_s: float | None) -> Iterator[BothKinds]:
        """Yield the values of links that were probed over both kinds of address."""
        found = []
        for file in self._overlapping(-np.inf if since_s is None else since_s, np.inf):
            rows = self._rows_of_file(file.path)
            kept = (rows["metric"] == METRICS.index(metric)) & (rows["kind"] > 0)
            kept &= (rows["src"] != rows["dst"]) & (rows["at_s"] >= (since_s or -np.inf))
            found.append(rows[kept])
        every = np.concatenate(found) if found else np.empty(0, _OF_FILE)
        every = every[np.lexsort((every["dst"], every["src"]))]
        yield from by_address(every, every["kind"] == _KINDS["private"], self.regions)

    def finished_transfers(
        self,
        since_s: float | None,  # noqa: ARG002 - of stores
    ) -> Iterator[tuple[str, str, float, float]]:
        """Yield nothing: transfers are in no data set."""
        return iter(())

    def about(self) -> dict[str, str]:
        """Return how much there is, in words."""
        samples = sum(span.samples for span in self._spans.values())
        found = {"samples in the data set": f"{samples:,}", "files": f"{len(self._files):,}"}
        if self.left_out:
            found["rows that are no samples"] = f"{self.left_out:,}"
        return found

    def newest(self, path: Path, most: int) -> Iterator[tuple[Sequence[int], pyarrow.RecordBatch]]:
        """Yield rows of a file that are among the newest of their series, and their numbers.

        Rows that are no samples are among them, so that they are told.

        Parameters
        ----------
        path : Path
            Of the data set.
        most : int
            Of each series and kind of address.
        """
        import pyarrow

        codes, since_s = self._newest_since(most)
        for numbers, batch in self._batches(path, tuple(TYPES)):
            rows, is_sample = self._rows_of(batch)
            kept = ~is_sample
            places = np.searchsorted(codes, self._series_codes(rows[is_sample]))
            kept[is_sample] = rows["at_s"][is_sample] >= since_s[places]
            if kept.any():
                found = np.array(numbers)[kept].tolist()
                yield found, batch.filter(pyarrow.array(kept))

    def _newest_since(self, most: int) -> tuple[Codes, NDArray[np.float64]]:
        """Return series and kinds of address, and since when each has its newest samples."""
        if most not in self._since:
            codes, times_s = np.empty(0, np.int64), np.empty(0)
            for file in self._files:
                rows = self._rows_of_file(file.path)
                codes = np.concatenate([codes, self._series_codes(rows)])
                times_s = np.concatenate([times_s, rows["at_s"]])
                order = np.lexsort((times_s, codes))
                codes, times_s = codes[order], times_s[order]
                kept = _from_the_end(np.diff(codes) != 0) <= most
                codes, times_s = codes[kept], times_s[kept]
            first = np.r_[True, np.diff(codes) != 0][: len(codes)]
            self._since[most] = codes[first], times_s[first]
        return self._since[most]

    def _series_codes(self, rows: NDArray[np.void]) -> Codes:
        code = rows["src"].astype(np.int64) * len(self.regions) + rows["dst"]
        is_private = rows["kind"] == _KINDS["private"]
        found: Codes = (code * len(METRICS) + rows["metric"]) * 2 + is_private
        return found

    # ---- rows ----------------------------------------------------------------------------------

    def _overlapping(self, begin_s: float, end_s: float) -> list[_TimedFile]:
        return [file for file in self._files if file.last_s >= begin_s and file.first_s < end_s]

    def _parts(
        self, metric: Metric, regions: Collection[int], begin_s: float, end_s: float
    ) -> Iterator[NDArray[np.void]]:
        """Yield the samples of each file."""
        asked = np.zeros(len(self.regions), bool)
        asked[list(regions)] = True
        for file in self._overlapping(begin_s, end_s):
            rows = self._rows_of_file(file.path)
            kept = (rows["metric"] == METRICS.index(metric)) & (rows["at_s"] >= begin_s)
            kept &= (rows["at_s"] < end_s) & asked[rows["src"]] & asked[rows["dst"]]
            yield rows[list(ROW.names or ())][kept].astype(ROW)

    def _rows_of_file(self, path: Path) -> NDArray[np.void]:
        if path in self._read:
            self._read.move_to_end(path)
            return self._read[path]
        is_new = path not in {file.path for file in self._files}
        parts = [np.empty(0, _OF_FILE)]
        for _, batch in self._batches(path, _WITHOUT_DETAIL):
            rows, is_sample = self._rows_of(batch)
            parts.append(rows[is_sample])
            self.left_out += int((~is_sample).sum()) if is_new else 0
        self._read[path] = found = np.concatenate(parts)
        while len(self._read) > 1 and sum(of.nbytes for of in self._read.values()) > MOST_BYTES:
            self._read.popitem(last=False)
        return found

    def _batches(
        self, path: Path, columns: Collection[str]
    ) -> Iterator[tuple[Sequence[int], pyarrow.RecordBatch]]:
        with path.open("rb") as stream:
            yield from read_batches(stream, str(path.relative_to(self._folder)), columns)

    def _rows_of(self, batch: pyarrow.RecordBatch) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
        """Return the rows of a batch, and which of them are samples."""
        rows = np.zeros(len(batch), _OF_FILE)
        zones = {}
        for end in ("src", "dst"):
            names, codes = _coded(batch, end)
            ends = [split(name) for name in names]
            ids = [self._region(found[0]) if found else -1 for found in ends]
            rows[end] = np.array(ids)[codes]
            zones[f"{end}_zone"] = np.array([self._text(e[1] if e else "") for e in ends])[codes]
        names, codes = _coded(batch, "metric")
        rows["metric"] = np.array([METRICS.index(n) if n in METRICS else -1 for n in names])[codes]
        names, codes = _coded(batch, "address")
        rows["kind"] = np.array([_KINDS.get(name, -1) for name in names])[codes]
        ways = []
        for name in _WAYS:
            names, codes = _coded(batch, name)
            texts = [NO_TOOL if name == "tool" and not text else text for text in names]
            of_rows = np.array([self._text(text) for text in texts])[codes]
            ways.append(np.where(of_rows, of_rows, zones[name]) if name in zones else of_rows)
        rows["setup"] = self._setups_of(ways)
        rows["at_s"], rows["value"] = _numbers(batch, "measured_at_s"), _numbers(batch, "value")
        connections, duration_s = _numbers(batch, "connections"), _numbers(batch, "duration_s")
        rows["warmed_up"] = _numbers(batch, "warmed_up") == 1
        is_sample = _are_samples(rows)
        most_s = limits.MAX_DURATION_S
        is_sample &= np.isnan(connections) | (connections >= 1)
        is_sample &= ~(connections > limits.MAX_CONNECTIONS)
        is_sample &= np.isnan(duration_s) | ((duration_s > 0) & (duration_s <= most_s))
        rows["connections"] = np.where(is_sample, np.nan_to_num(connections), 0)
        rows["duration_s"] = np.nan_to_num(duration_s)
        return rows, is_sample

    def _count(self, rows: NDArray[np.void]) -> None:
        """Add the rows of a file to what there is."""
        for metric in np.unique(rows["metric"]):
            of_metric = rows[rows["metric"] == metric]
            most = int(of_metric["connections"].max())
            self._most_connections[metric] = max(self._most_connections.get(metric, 0), most)
            keys = (of_metric["setup"], of_metric["dst"], of_metric["src"])
            of_metric = of_metric[np.lexsort((of_metric["at_s"], *keys))]
            ends = np.stack([of_metric[name] for name in ("src", "dst", "setup")])
            begins = np.flatnonzero(np.r_[True, (np.diff(ends) != 0).any(axis=0)])
            lasts = np.r_[begins[1:], len(of_metric)] - 1
            for begin, last in zip(begins.tolist(), lasts.tolist(), strict=True):
                src, dst, setup = (int(of_metric[begin][name]) for name in ("src", "dst", "setup"))
                first_s, last_s = (float(of_metric[at]["at_s"]) for at in (begin, last))
                key, count = (src, dst, int(metric), setup), last + 1 - begin
                if known := self._spans.get(key):
                    count += known.samples
                    first_s, last_s = min(first_s, known.first_s), max(last_s, known.last_s)
                name = METRICS[metric]
                self._spans[key] = SeriesSpan(src, dst, name, setup, count, first_s, last_s)

    # ---- names ---------------------------------------------------------------------------------

    def _region(self, name: str) -> int:
        number = self._region_ids.setdefault(name, len(self._region_ids))
        self.regions[number] = name
        return number

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _setups_of(self, ways: list[Codes]) -> Codes:
        """Return the numbers of setups, of those of their texts."""
        import pyarrow

        radix = len(self._texts)
        code = np.zeros(len(ways[0]), np.int64)
        for of_rows in ways:
            code = code * radix + of_rows
        coded = pyarrow.array(code).dictionary_encode()
        texts, ids = list(self._texts), []
        for found in coded.dictionary.to_pylist():
            way = tuple(found // radix**power % radix for power in range(len(ways) - 1, -1, -1))
            number = self._setup_ids.setdefault(way, len(self._setup_ids))
            self.setups[number] = Setup(*(texts[place] for place in way))
            ids.append(number)
        return np.array(ids, np.int64)[coded.indices.to_numpy()] if ids else code


def _are_samples(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which rows have regions, a metric, a time and a value that it can have."""
    found: NDArray[np.bool_] = (rows["src"] >= 0) & (rows["dst"] >= 0) & (rows["kind"] >= 0)
    found &= limits.are_times(rows["at_s"])
    possible = np.zeros(len(rows), bool)
    for number, metric in enumerate(METRICS):
        of_metric = rows["metric"] == number
        one_region = rows["src"] == rows["dst"]
        right = one_region == (metric in limits.OF_ONE_VM)
        possible |= of_metric & right & limits.are_possible(metric, rows["value"])
    return found & possible


def _coded(batch: pyarrow.RecordBatch, name: str) -> tuple[list[str], Codes]:
    """Return the texts of a column, and which of them each row has; ``""`` where it has none."""
    texts = _texts(batch, name)
    if len(texts.dictionary) == 0:
        return [""], np.zeros(len(batch), np.int64)
    names = [*texts.dictionary.to_pylist(), ""]
    codes = texts.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
    return [name or "" for name in names], codes.astype(np.int64)


def _texts(batch: pyarrow.RecordBatch, name: str) -> pyarrow.DictionaryArray:
    import pyarrow

    if name not in batch.schema.names:
        return pyarrow.nulls(len(batch), pyarrow.string()).dictionary_encode()
    values = batch.column(name)
    if isinstance(values, pyarrow.DictionaryArray):
        return values
    return values.cast(pyarrow.string()).dictionary_encode()


def _numbers(batch: pyarrow.RecordBatch, name: str) -> NDArray[np.float64]:
    """Return a column of numbers, NaN where there is none."""
    import pyarrow

    if name not in batch.schema.names:
        return np.full(len(batch), np.nan)
    values = batch.column(name).cast(pyarrow.type_for_alias(TYPES[name]))
    found: NDArray[np.float64] = values.cast("float64").to_numpy(zero_copy_only=False)
    return found


def _missing(batch: pyarrow.RecordBatch, name: str) -> NDArray[np.bool_]:
    return np.isnan(_numbers(batch, name))


def _newest(rows: NDArray[np.void], most: int) -> NDArray[np.void]:
    """Return the newest rows of each link."""
    rows = rows[np.lexsort((rows["value"], rows["at_s"], rows["dst"], rows["src"]))]
    changes = (np.diff(rows["src"]) != 0) | (np.diff(rows["dst"]) != 0)
    return rows[_from_the_end(changes) <= most] if len(rows) else rows


def _from_the_end(changes: NDArray[np.bool_]) -> Codes:
    """Return the place of each row from the end of its run, of where runs change."""
    ends = np.append(np.flatnonzero(changes) + 1, len(changes) + 1)
    found: Codes = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(len(changes) + 1)
    return found


def _by_number(texts: Mapping[int, str], names: samples.NameTable) -> NDArray[np.int32]:
    found = np.zeros(max(texts, default=0) + 1, np.int32)
    for number, text in texts.items():
        found[number] = names[text]
    return found


def _joined(found: list[NDArray[np.void]]) -> NDArray[np.void]:
    return np.concatenate(found) if found else np.empty(0, ROW)

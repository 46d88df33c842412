"""Many transfers decided at once, as an array: the figures of plans without their words.

What can be decided on arrays is (:mod:`planner.transfer.many`); the rest is planned one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.fields.kinds import Quantity
from planner.fields.shared import DEFAULT_VOLUME_GB
from planner.fields.specified import fields_of
from planner.model.errors import DataError, InfeasibleError, InputError, not_installed
from planner.model.link_array import Records
from planner.model.network import Network
from planner.model.rate_cuts import with_lasting_caps
from planner.transfer.request import TransferRequest
from relayd.questions.holds import what_is_left
from relayd.questions.resolving import NetworkView, by_regions, forbidden, network_of, prices_of

NUMBERS = "volume_gb", "budget_usd", "deadline_s", "min_throughput_gbps"
"""Fields that an array may have a figure of for each transfer, NaN for none."""
FIGURES = (
    *("throughput_gbps_low", "throughput_gbps", "throughput_gbps_high"),
    *("duration_s", "cost_usd", "split_gain"),
)
COUNTS = "src_vms", "dst_vms", "relay_vms"
VERDICTS = "direct", "relay", "split", "infeasible", "unknown"
_WAY = dict(zip(FIGURES, ("low_gbps", "gbps", "high_gbps", *FIGURES[3:]), strict=True))
NPY, ARROW = "application/x-npy", "application/vnd.apache.arrow.stream"
_ALONE = "objects", "max_age_s", "max_price_age_s", "queue"
"""Fields that only plans one by one heed."""


def decide(
    wan: NetworkView,
    src: str | Sequence[str],
    dst: str | Sequence[str],
    volume_gb: ArrayLike | str = DEFAULT_VOLUME_GB,
    *,
    splits: bool = False,
    **fields: Any,
) -> Records:
    """Decide many transfers at once, with the figures that :meth:`plan` has of each.

    Parameters
    ----------
    src, dst : str or sequence of str
        Regions, as :meth:`plan` takes them; one of them may be one name for all.
    volume_gb : float, str or array
        In GB; one for all, or one a transfer. A text has a unit: ``"500GB"``.
    splits : bool
        Whether to look for splits over several paths where one might save over 2 %: some 10 ms for
        each of these. Otherwise every transfer has one path, as with ``single_path``.
    **fields
        Those of :meth:`plan`: one value for all, or a list with one for each transfer (None, and
        NaN in arrays, for no limit). `avoid` and `allow` are for all.

    Returns
    -------
    structured array, length m
        ``src``, ``dst`` (ids of regions); ``verdict``: ``direct``, ``relay``, ``split``,
        ``infeasible`` (no plan meets the limits) or ``unknown`` (nothing is known of a path);
        ``via``: the relay, of a split all, with commas; ``src_vms``, ``dst_vms``, ``relay_vms``;
        ``throughput_gbps`` with ``_low`` and ``_high``, in Gbit/s; ``duration_s``; ``cost_usd``;
        and ``split_gain``: the most that a split may save of cost or of what is aimed at, where it
        may be over 2 %, as a share, else 0. NaN: not known.

    Raises
    ------
    InputError
        If a value is wrong; the field has the transfer's position.
    """
    columns = columns_of({"src": src, "dst": dst, "volume_gb": volume_gb, **fields})
    return decisions_on(wan, columns, splits=splits)


@dataclass(frozen=True, slots=True)
class Columns:
    """Fields of transfers: lists with one value for each, or for all; and those of all together."""

    count: int
    listed: Mapping[str, Sequence[Any]]
    settings: Mapping[str, Any]

    def part(self, first: int, count: int) -> Columns:
        """Return some transfers in a row."""
        few = {
            name: values[first : first + count] if len(values) == self.count else values
            for name, values in self.listed.items()
        }
        return Columns(min(count, self.count - first), few, self.settings)


def columns_of(fields: Mapping[str, Any]) -> Columns:
    """Return the fields of transfers; an InputError where there are not as many of each."""
    known, listed, settings = fields_of(TransferRequest), dict[str, Any](), dict[str, Any]()
    unitless = {field.unitless: name for name, field in known.items()}
    for given, value in {"volume_gb": DEFAULT_VOLUME_GB, **fields}.items():
        is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
        name = unitless.get(given, given) if is_list or isinstance(value, str) else given
        field = known.get(name)
        if name in {"src", "dst", *NUMBERS} or (is_list and field and not field.kind.repeated):
            listed[name] = value if is_list else [value]
        else:
            settings[name] = value
    lengths = {len(values) for values in listed.values()}
    count = max(lengths - {1}, default=1)
    for name, values in listed.items():
        if len(values) not in {1, count}:
            problem = f"must have one value, or {count}: one a transfer"
            raise InputError(name, problem, value=len(values))
    return Columns(count, listed, settings)


def decisions_on(
    wan: NetworkView, columns: Columns, *, splits: bool = False, first: int = 0
) -> Records:
    """Return the decisions of :func:`decide`; errors count transfers from `first` on."""
    count, settings = columns.count, columns.settings
    listed = {
        name: values if len(values) == count else [*values] * count
        for name, values in columns.listed.items()
    }
    numbers = {n: _numbers(n, listed.pop(n, [nan] * count), first) for n in NUMBERS}
    ends = [*zip(listed.pop("src"), listed.pop("dst"), strict=True)]
    groups = dict[str, list[int]]()
    for row, values in enumerate(zip(*listed.values(), strict=True)) if listed else ():
        groups.setdefault(repr(values), []).append(row)
    parts, places = [], [*groups.values()] if listed else [[*range(count)]]
    for rows in places if count else ():
        own = {name: values[rows[0]] for name, values in listed.items()}
        stated: dict[str, Any] = {name: one for name, one in own.items() if one is not None}
        try:
            stated |= {"src": ends[rows[0]][0], "dst": ends[rows[0]][1]}
            like = TransferRequest(**settings, **stated)
        except InputError as fault:
            raise fault.within(f"[{first + rows[0]}]") if count > 1 else fault from None
        of = wan.at(like.snapshot) if like.snapshot else wan
        few = {name: values[rows] for name, values in numbers.items()}
        alike = _Alike(of, like, [first + row for row in rows], [ends[row] for row in rows], few)
        parts.append(alike.decided(splits=splits))
    if not parts:
        return np.zeros(0, _type(1, 1))
    found: Records = np.concatenate(parts) if parts[1:] else parts[0]
    return found[np.argsort(np.concatenate(places))] if parts[1:] else found


def columns_bytes(found: Records, kind: str) -> bytes:
    """Return decisions as a file of numpy, or as an Arrow stream.

    Raises
    ------
    InputError
        If that is asked for without pyarrow.
    """
    stream = BytesIO()
    if kind == NPY:
        np.save(stream, found)
        return stream.getvalue()
    try:
        import pyarrow
    except ImportError:
        raise not_installed("pyarrow", "parquet", "answer as Arrow") from None
    names = found.dtype.names or ()
    table = pyarrow.table({name: np.ascontiguousarray(found[name]) for name in names})
    with pyarrow.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _type(width: int, via: int) -> np.dtype[Any]:
    names = [("src", f"U{width}"), ("dst", f"U{width}"), ("verdict", "U10"), ("via", f"U{via}")]
    return np.dtype([*names, *((n, "i4") for n in COUNTS), *((n, "f8") for n in FIGURES)])


def _numbers(name: str, values: Sequence[Any], first: int) -> NDArray[np.float64]:
    """Return the figures of a field, NaN for none; an InputError names the first wrong one."""
    field = fields_of(TransferRequest)[name]
    assert isinstance(field.kind, Quantity)
    try:
        found = np.array(values, float)
    except (TypeError, ValueError):
        read = cache(field.kind.validate)
        found = np.array(
            [
                nan if one is None else read(one, f"{name}[{first + row}]")
                for row, one in enumerate(values)
            ]
        )
    is_wrong = ~((found >= field.kind.least) & (found <= field.kind.most))
    if field.optional:
        is_wrong &= ~np.isnan(found)
    for row in np.flatnonzero(is_wrong).tolist():
        field.kind.validate(values[row], f"{name}[{first + row}]")
    return found


class _Alike:
    """Transfers whose settings are those of one request."""

    def __init__(
        self,
        wan: NetworkView,
        like: TransferRequest,
        rows: Sequence[int],
        pairs: Sequence[tuple[str, str]],
        numbers: Mapping[str, NDArray[np.float64]],
    ) -> None:
        self.wan, self.like, self.rows, self.numbers = wan, like, rows, numbers
        self.pairs, of_pair = pairs, dict[tuple[str, str], int]()
        self.number = np.array([of_pair.setdefault(pair, len(of_pair)) for pair in pairs])
        self.resolved = []
        for pair, number in of_pair.items():
            try:
                self.resolved.append(wan.resolve_pair(*pair))
            except InputError as fault:
                raise fault.within(f"[{rows[int(np.argmax(self.number == number))]}]") from None

    def decided(self, *, splits: bool) -> Records:
        """Return the decisions, with splits where they may pay."""
        wan, ends = self.wan, np.array([found[:2] for found in self.resolved])
        width = max(map(len, (*wan.known_regions(), *ends.flat)))
        found = np.zeros(len(self.rows), _type(width, width))
        found["src"], found["dst"] = ends[self.number].T
        is_open = np.ones(len(found), bool)
        if not any(getattr(self.like, name) for name in _ALONE):
            # No link between partitions, but for those between ends, is in a network.
            apart = {name for name in ends.flat if wan.catalogue.region(name).is_apart}
            groups = defaultdict[frozenset[str], list[int]](list)
            for number, pair in enumerate(ends.tolist()):
                groups[frozenset(apart.intersection(pair))].append(number)
            for numbers in groups.values():
                rows = np.flatnonzero(np.isin(self.number, numbers))
                is_open[rows] = self._on_arrays(found, rows, ends[numbers[0]].tolist())
        is_open |= splits & (found["split_gain"] != 0)
        return self._one_by_one(found, np.flatnonzero(is_open), splits=splits)

    def _on_arrays(self, found: Records, rows: Any, ends: list[str]) -> Any:
        """Fill in decisions on arrays; returns which of the rows are left."""
        from planner.transfer.many import DIRECT, NONE, Transfers, can_decide, decide_many

        wan, like = self.wan, self.like
        common, denied = by_regions(wan, like, {}), forbidden(wan, like.with_(allow=()), {})
        relays = like.relays
        if relays not in {"any", "one", "none"}:
            relays = wan.resolve(relays, "relays").region_id
            if relays in common["avoid"] or wan.catalogue.region(relays).is_apart:
                return True
        network, holds = network_of(wan, ends, like), wan.holds()
        catalogue = wan.catalogue
        like = replace(like, src=ends[0], dst=ends[1], relays=relays, **common)
        prices = prices_of(catalogue, network, like)
        if holds.all:
            network, prices = what_is_left(network, prices, holds, catalogue)
        lasts = with_lasting_caps(network, catalogue.vm_types, 1.0) is network
        if not lasts or not can_decide(like, prices):
            return True
        at = self._positions(
            network, {*denied, relays} | {p for k, p in holds.by_place if k == "pool"}
        )
        src, dst = at[self.number[rows]].T
        left = (src < 0) | (dst < 0) | (src == dst)
        many = [self.numbers[name][rows[~left]] for name in NUMBERS]
        limits = [
            np.nan_to_num(one, nan=none)
            for one, none in zip(many, (0.0, inf, inf, 0.0), strict=True)
        ]
        ways, is_open = decide_many(
            like, network, prices, Transfers(src[~left], dst[~left], *limits)
        )
        at_rows, names, via = rows[~left], np.array(["", *network.sites]), ways["relay"]
        found["verdict"][at_rows] = np.array(VERDICTS)[
            np.where(via == NONE, 3, via >= 0).astype(int)
        ]
        found["via"][at_rows] = names[np.maximum(via, DIRECT) + 1]
        for name in (*COUNTS, *FIGURES):
            found[name][at_rows] = ways[_WAY.get(name, name)]
        left[~left] = is_open
        return left

    def _positions(self, network: Network, but: Iterable[str]) -> Any:
        """Return the positions of the ends of pairs, -1 where plans one by one see to them."""
        links, falling = network.usual, set[str]()
        for position, name in enumerate(links.regions):
            for cells in (links.row(position), links.column(position)):
                if any(cut.cause != "burst" for _, cut in links.rate_cuts(cells)):
                    falling.add(name)
        index = {name: at for name, at in network.index.items() if name not in {*but, *falling}}
        return np.array(
            [
                (-1, -1)
                if (src, dst) in network.verified or any(one.bucket for one in named)
                else (index.get(src, -1), index.get(dst, -1))
                for src, dst, named in self.resolved
            ]
        )

    def _one_by_one(self, found: Records, rows: Any, *, splits: bool) -> Records:
        """Plan the transfers that are left."""
        if not len(rows):
            return found
        from relayd.questions.transfer import plan_transfer

        vias = dict[int, str]()
        for row in rows.tolist():
            src, dst = self.pairs[row]
            limits = {
                n: None if np.isnan(v[row]) else float(v[row]) for n, v in self.numbers.items()
            }
            one = found[row]
            for name in (*FIGURES, *COUNTS):
                one[name] = nan if name in FIGURES else 0
            more = {"single_path": not splits or self.like.single_path, "details": "decision"}
            try:
                plan = plan_transfer(self.wan, self.like.with_(src=src, dst=dst, **limits, **more))
            except (DataError, InfeasibleError) as fault:
                one["verdict"], vias[row] = VERDICTS[3 + isinstance(fault, DataError)], ""
                continue
            except InputError as fault:
                raise fault.within(f"[{self.rows[row]}]") from None
            ends = plan.paths[0].regions[0], plan.paths[0].regions[-1]
            one["verdict"], one["cost_usd"] = plan.verdict, plan.cost_usd.total
            for name in FIGURES[:4]:
                one[name] = getattr(plan, name)
            one["split_gain"] = 0.0 if splits else nan
            one["src_vms"], one["dst_vms"] = (plan.vms[end] for end in ends)
            relays = [region for path in plan.paths for region in path.regions[1:-1]]
            one["relay_vms"], vias[row] = sum(plan.vms[name] for name in relays), ",".join(relays)
        width = max([found.dtype["via"].itemsize // 4, *map(len, vias.values())])
        found = found.astype(_type(found.dtype["src"].itemsize // 4, width))
        for row, via in vias.items():
            found["via"][row] = via
        return found

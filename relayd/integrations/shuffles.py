"""A shuffle of an engine: which region reduces each partition, and what then moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from planner.fields.specified import fields_of
from planner.model.errors import InputError
from planner.model.units import duration_text, usd_text, volume_text
from planner.placement.plan import ReducePlacement
from planner.placement.request import ReduceRequest
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.request import ShuffleRequest
from relayd.client.blocking import RemoteWan
from relayd.sources.opening import opened
from relayd.sources.wan import Wan

# Goals decide the placement; the transfers that follow from it are as quick as they can be.
_GOALS = {"objective", "deadline_s", "margin", "relays"}
_OF_BOTH = (fields_of(ReduceRequest).keys() & fields_of(ShuffleRequest).keys()) - _GOALS


@dataclass(frozen=True, slots=True)
class PlacedShuffle:
    """A region for each partition of a shuffle.

    Attributes
    ----------
    placement : ReducePlacement
        The fractions of the keys, and what other fractions would take.
    region_of_partition : tuple of str
        By the partition's number; partitions of a region follow each other.
    transfers : ShufflePlan | None
        Rate, connections and end of each pair of regions, for whole partitions; None where nothing
        crosses between regions.
    """

    placement: ReducePlacement
    region_of_partition: tuple[str, ...]
    transfers: ShufflePlan | None

    @property
    def partitions_in(self) -> dict[str, int]:
        """Number of partitions that each region reduces."""
        return dict(Counter(self.region_of_partition))

    @property
    def duration_s(self) -> float:
        """Until the last pair of regions ends."""
        return self.transfers.duration_s if self.transfers else 0.0

    @property
    def moved_gb(self) -> float:
        """Volume that crosses between regions."""
        return self.transfers.volume_gb if self.transfers else 0.0

    @property
    def egress_usd(self) -> float:
        """Egress fees of what crosses."""
        return self.transfers.cost_usd.egress if self.transfers else 0.0

    def __str__(self) -> str:
        """Say where partitions go, for people."""
        equal = next(one for one in self.placement.options if one.name == "equal")
        lines = [f"{region}: {count} partitions" for region, count in self.partitions_in.items()]
        lines.append(
            f"{duration_text(self.duration_s)}, {volume_text(self.moved_gb)} between regions, "
            f"{usd_text(self.egress_usd)} of egress fees; spread evenly: "
            f"{duration_text(equal.duration_s)}, {volume_text(equal.moved_gb)}, "
            f"{usd_text(equal.cost_usd.egress)}"
        )
        return "\n".join(lines)


def place_shuffle(
    wan: Wan | RemoteWan | None, input_gb: Mapping[str, float], partitions: int, **question: Any
) -> PlacedShuffle:
    """Return a region for each partition of a shuffle, such that it ends soonest.

    Parameters
    ----------
    wan : Wan or RemoteWan or None
        What is known of the network; None for the store of the user.
    input_gb : mapping
        What is shuffled, by region, ids or aliases.
    partitions : int
        Of equal size, as hashing makes them.
    **question
        Further fields of :class:`~planner.placement.request.ReduceRequest`, such as ``budget_usd``
        or ``connections``. An engine's workers run already, unless ``vms_running=False`` says that
        VMs have to start.

    Raises
    ------
    InputError
        If there is no partition, or a field is wrong.
    InfeasibleError, DataError
        See :mod:`planner.model.errors`.
    """
    if partitions < 1:
        raise InputError("partitions", "must be at least 1", value=partitions)
    question = {"vms_running": True, **question}
    with opened(wan) as known:
        placement = known.place_reduce(input_gb, **question)
        counts = _whole(placement.fractions, partitions)
        regions = tuple(chain.from_iterable(repeat(region, n) for region, n in counts.items()))
        demands_gb = {
            (src, dst): volume_gb * counts[dst] / partitions
            for src, volume_gb in placement.request["input_gb"].items()
            for dst in counts
            if src != dst and volume_gb > 0 and counts[dst]
        }
        selectivity = placement.request["selectivity"]
        transfers = None
        if demands_gb:
            same = {name: value for name, value in question.items() if name in _OF_BOTH}
            transfers = known.shuffle(
                {pair: volume_gb * selectivity for pair, volume_gb in demands_gb.items()},
                relays="none",
                **{"vms": placement.request["vms"], **same},
            )
    return PlacedShuffle(placement, regions, transfers)


def _whole(fractions: Mapping[str, float], count: int) -> dict[str, int]:
    """Divide a count in proportion to fractions, by the largest remainders."""
    exact = {name: fraction * count for name, fraction in fractions.items()}
    whole = {name: int(value) for name, value in exact.items()}
    by_rest = sorted(exact, key=lambda name: exact[name] - whole[name], reverse=True)
    for name in by_rest[: count - sum(whole.values())]:
        whole[name] += 1
    return whole

"""What the examples share: words in several regions, and the buckets of keys that each reduces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from planner.placement.plan import ReducePlacement
from relayd import Wan

BUCKETS = 60
GB_PER_WORD = 0.01  # as if every word stood for as much
DATA = {
    "azure:eastus": ["tiger", "elm", "oak", "gnu", "ant", "yew"] * 700,
    "aws:us-east-1": ["oak", "bee", "fir", "cat", "dog", "ash"] * 100,
    "aws:ap-northeast-1": ["cat", "emu", "fox", "owl", "rat", "bat"] * 50,
}


def place(wan: Wan, data: Mapping[str, Sequence[str]]) -> ReducePlacement:
    """Return each region's fraction of the keys for which the shuffle ends soonest."""
    input_gb = {region: len(words) * GB_PER_WORD for region, words in data.items()}
    return wan.place_reduce(input_gb, vms_running=True)  # the engine's workers are there


def buckets(fractions: Mapping[str, float], count: int = BUCKETS) -> list[str]:
    """Return the region of each of so many buckets of keys, in proportion to the fractions."""
    names, ends = list(fractions), list(accumulate(fractions.values()))
    found = []
    for bucket in range(count):
        middle = (bucket + 0.5) / count * ends[-1]
        found.append(names[next(i for i, end in enumerate(ends) if end >= middle)])
    return found


def durations(placement: ReducePlacement) -> str:
    """Durations of the shuffle, as planned and with equal fractions."""
    equal = next(option for option in placement.options if option.name == "equal")
    return f"shuffle: {placement.duration_s:.0f} s; evenly: {equal.duration_s:.0f} s"

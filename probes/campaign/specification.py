"""What a campaign is to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from planner.model.errors import InputError
from probes.campaign.tasks import PHASES, Phase
from probes.fleet.hosts import Fleet


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """What a campaign measures.

    Attributes
    ----------
    phases : tuple of Phase
    pairs : tuple of (source host, destination host)
        Only these; empty to let the campaign choose.
    thorough : bool
        All pairs, with one flow and with many.
    connections : int
        At most, of a probe.
    flow_s, aggregate_s : float
        Longest duration of a probe, warm-up included.
    aggregate_first_s : float
        Seconds that a probe of many connections measures first. It ends with them where they agree
        and lie within the bounds of what is known; 0 to measure once.
    threshold : float
        Expected regret at which to stop: share of throughput lost for lack of measurements.
    """

    phases: tuple[Phase, ...] = PHASES
    pairs: tuple[tuple[str, str], ...] = ()
    thorough: bool = False
    connections: int = 64
    flow_s: float = 10.0
    aggregate_s: float = 5.0
    aggregate_first_s: float = 0.0
    threshold: float = 0.01

    @property
    def flow_first_s(self) -> float:
        """Longest time of one connection at the beginning of each probe of many; 0 for none.

        Where the same pairs are measured with one connection and with many, one probe does both,
        and no VM is needed a second time.
        """
        same_pairs = bool(self.pairs) or self.thorough
        both = {"per-flow", "aggregate"} <= set(self.phases) and self.connections > 1
        return self.flow_s if same_pairs and both else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the specification as plain values, to be kept with its campaign."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> CampaignSpec:
        """Return the specification that :meth:`to_json` was called on."""
        pairs = tuple((src, dst) for src, dst in content["pairs"])
        return cls(**{**content, "phases": tuple(content["phases"]), "pairs": pairs})


def parse_pairs(words: Sequence[str], fleet: Fleet) -> tuple[tuple[str, str], ...]:
    """Read ``SRC>DST`` pairs; a region means each of its hosts.

    Raises
    ------
    InputError
        If one is not a pair of hosts or regions of the fleet.
    """
    pairs: dict[tuple[str, str], None] = {}
    for word in words:
        source, arrow, destination = word.partition(">")
        if not arrow:
            raise InputError(
                "--pairs",
                "is not a pair",
                value=word,
                remedy="Write SRC>DST in quotes, such as 'aws:us-east-1>gcp:us-east1'.",
            )
        for src in _named(source.strip(), fleet):
            for dst in _named(destination.strip(), fleet):
                if fleet[src].region != fleet[dst].region:
                    pairs[src, dst] = None
    if words and not pairs:
        raise InputError("--pairs", "names no two different regions", value=" ".join(words))
    return tuple(pairs)


def _named(name: str, fleet: Fleet) -> list[str]:
    if name == "*":
        return list(fleet.hosts)
    found = [host.name for host in fleet if name in (host.name, host.region)]
    if not found:
        raise InputError(
            "--pairs",
            "names neither a host nor a region of the fleet",
            value=name,
            remedy="`*` means all of them.",
        )
    return found

"""The watched links: their health in memory, and the changes to store and report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from planner.model.link_states import Condition, Pair
from planner.model.network import Network
from probes.liveness.link_health import (
    HealthPolicy,
    LinkHealth,
    LivenessProbe,
    after_probe,
    after_throughput,
)
from probes.samples import Sample
from relayd.store.links import Kept
from relayd.times import utc_text

TOOL = "relayd-watch"


class ConditionChange(NamedTuple):
    """A link whose condition changed."""

    src: str
    dst: str
    before: Condition
    health: LinkHealth


def health_detail(health: LinkHealth) -> dict[str, Any]:
    """Return the begin of a link's condition, and its reason."""
    return {"since": utc_text(health.since_s), "reason": health.reason}


class WatchedLinks:
    """Health of directed links between regions."""

    def __init__(self, pairs: Iterable[Pair], policy: HealthPolicy) -> None:
        self.policy = policy
        self.healths = {pair: LinkHealth() for pair in pairs}
        # Links that ever answered; others may be filtered.
        self.answered: set[Pair] = set()
        self.changed: set[Pair] = set()
        self._changes: list[ConditionChange] = []
        self._network: Network | None = None
        self.usual_ms: dict[Pair, float] = {}
        self._contradicted: set[Pair] = set()  # by transfers
        self._collected: dict[Pair, list[LivenessProbe]] = {}

    def resume(self, kept: Iterable[Kept], now_s: float) -> None:
        """Go on from the states that an earlier watcher stored."""
        for row in kept:
            pair = (row.src, row.dst)
            if pair not in self.healths:
                continue
            self.answered.add(pair)
            if row.valid_until_s < now_s:  # expired: the link starts again
                self.changed.add(pair)
                continue
            # Fields of other versions are dropped.
            known = {k: v for k, v in row.health.items() if k in LinkHealth.__slots__}
            self.healths[pair] = LinkHealth(**known)

    def expect(self, network: Network) -> None:
        """Take over the usual figures of a network: measured round-trip times, and rates.

        And which links transfers contradict: that changes with the network alone.
        """
        self._network = network
        self.usual_ms, self._contradicted = {}, set()
        for src, dst in self.healths:
            link = network.usual.get(src, {}).get(dst)
            figures = link and link.aggregate_gbps.origin.figures
            if figures and figures.is_contradicted:
                self._contradicted.add((src, dst))
            if link and link.rtt_ms.source == "measured":
                self.usual_ms[src, dst] = link.rtt_ms.expected
                self.answered.add((src, dst))

    def observed(self, pair: Pair, probe: LivenessProbe, *, loaded: bool = False) -> LinkHealth:
        """Count a liveness probe; return the link's health after it."""
        if probe.received:
            self.answered.add(pair)
        elif pair not in self.answered:
            return self.healths[pair]
        if probe.received or pair in self._collected:
            seen = replace(probe, rtt_ms=None) if loaded else probe
            self._collected.setdefault(pair, []).append(seen)
        before = self.healths[pair]
        after = after_probe(before, probe, self.policy, self.usual_ms.get(pair), loaded=loaded)
        return self._updated(pair, before, after)

    def measured(self, samples: Iterable[Sample]) -> None:
        """Count throughput samples, the oldest first."""
        for sample in samples:
            pair = (sample.src, sample.dst)
            link = (
                self._network.usual.get(sample.src, {}).get(sample.dst) if self._network else None
            )
            if link is None or pair not in self.healths:
                continue
            connections = 1 if sample.metric == "per_flow_mbps" else sample.connections or 64
            low, expected = (
                1e3 * link.rate_gbps(connections, bound) for bound in ("low", "expected")
            )
            before = self.healths[pair]
            after = after_throughput(
                before, sample.value, low, expected, sample.measured_at_s, self.policy
            )
            self._updated(pair, before, after)

    def _updated(self, pair: Pair, before: LinkHealth, after: LinkHealth) -> LinkHealth:
        self.healths[pair] = after
        if after.condition != before.condition:
            self._changes.append(ConditionChange(*pair, before.condition, after))
        if after.condition != before.condition or after.reason != before.reason:
            self.changed.add(pair)
        return after

    def doubtful(self, before_s: float) -> list[Pair]:
        """Return the links to measure again of those measured last before a time, or never.

        Their throughput had collapsed, or transfers contradict it.
        """
        return [
            pair
            for pair, health in self.healths.items()
            if health.rate_at_s < before_s and (health.rate_share < 1 or pair in self._contradicted)
        ]

    # ---- changes and samples to store ---------------------------------------------------------

    def unusual(self) -> dict[Pair, LinkHealth]:
        """Return the links that are not up."""
        return {pair: h for pair, h in self.healths.items() if h.condition != "up"}

    def take_changes(self) -> tuple[list[ConditionChange], set[Pair]]:
        """Return the changes since the last call for events, and the links to store or to drop."""
        changes, changed = self._changes, self.changed
        self._changes, self.changed = [], set()
        return changes, changed

    def give_back(self, changes: list[ConditionChange], changed: set[Pair]) -> None:
        """Take back changes that could not be stored, to store them later."""
        self._changes = changes + self._changes
        self.changed |= changed

    def take_samples(self) -> list[Sample]:
        """Return the probes since the last call as samples: median round-trip time, and loss."""
        collected, self._collected = self._collected, {}
        samples = []
        for (src, dst), probes in collected.items():
            sent, received = sum(one.sent for one in probes), sum(one.received for one in probes)
            detail = json.dumps({"packets": sent, "replies": received})
            lost_pct, at_s = 100.0 * (sent - received) / sent, probes[0].at_s
            samples.append(Sample(src, dst, "loss_pct", lost_pct, at_s, TOOL, detail=detail))
            if times_ms := [one.rtt_ms for one in probes if one.rtt_ms is not None]:
                rtt_ms = median(times_ms)
                samples.append(Sample(src, dst, "rtt_ms", rtt_ms, at_s, TOOL, detail=detail))
        return samples

    def counts(self) -> Mapping[str, int]:
        """Count the links by condition."""
        counts = {"watched": len(self.healths), "up": 0, "degraded": 0, "down": 0, "unanswered": 0}
        for pair, health in self.healths.items():
            counts[health.condition if pair in self.answered else "unanswered"] += 1
        return counts

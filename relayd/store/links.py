"""Links in the store: their states now, changes of level, events, and series of samples."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from planner.model.link_states import LinkState, Pair
from probes.analysis.binning import Points, points
from probes.estimation.current_samples import WITH_A_LEVEL, LinkShift, current_samples
from probes.liveness.link_health import LinkHealth
from probes.metrics import Metric
from relayd.store.database import COLUMNS_OF_ENDS, NAMED_ENDS, Database, Part
from relayd.store.samples.reading import StoredSamples
from relayd.times import utc_text

_PAIR = (
    "WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?)"
)
_BEYOND = 1e300
"""Of times: SQL knows no infinity."""

# ---- links that are down or degraded now: every reader plans around them at once ----------------


class Kept(NamedTuple):
    """A link's health as it is stored, and until when it is valid."""

    src: str
    dst: str
    health: dict[str, Any]
    valid_until_s: float


class LinkStates(Part):
    """The states of a store."""

    def now(self, now_s: float) -> dict[Pair, LinkState]:
        """Return the links that are down or degraded, without states that have expired."""
        rows = self._database.rows(
            "SELECT src.name, dst.name, condition, since_s, reason, rtt_ms, loss_share, "  # noqa: S608
            f"rate_share, valid_until_s FROM link_states {NAMED_ENDS} WHERE valid_until_s >= ?",
            (now_s,),
        )
        return {
            (src, dst): LinkState(src, dst, condition, utc_text(since_s), *figures)
            for src, dst, condition, since_s, *figures in rows
        }

    def kept(self) -> list[Kept]:
        """Return the health of links that a watcher resumes from."""
        rest = f"link_states {NAMED_ENDS}"
        return self._database.records(Kept, rest, columns=COLUMNS_OF_ENDS)

    def keep(
        self, healths: Mapping[Pair, LinkHealth], usual: Iterable[Pair], until_s: float
    ) -> None:
        """Store the health of links that are not up, and remove that of those as usual again.

        In the caller's transaction. It is believed until `until_s` unless it is kept again.
        """
        for pair, health in healths.items():
            # A round trip counts against the link only where it is what is wrong.
            slow = health.rtt_ms if "round trips" in health.reason else None
            row = {
                **self._database.ends(*pair),
                "condition": health.condition,
                "since_s": health.since_s,
                "reason": health.reason,
                "rtt_ms": slow,
                "loss_share": min(1.0, health.loss_share),
                "rate_share": min(1.0, health.rate_share),
                "valid_until_s": until_s,
                "health": json.dumps(asdict(health), sort_keys=True),
            }
            self._database.put("link_states", row, ["src_id", "dst_id"])
        for pair in usual:
            sql = "DELETE FROM link_states WHERE src_id = :src_id AND dst_id = :dst_id"
            self._database.change(sql, self._database.ends(*pair))

    def forget_before(self, at_s: float) -> None:
        """Remove states that have expired: no watcher refreshes them."""
        self._database.change("DELETE FROM link_states WHERE valid_until_s < ?", (at_s,))


# ---- lasting changes of level, each recorded once -----------------------------------------------


def _shifts(database: Database, where: str, *values: object) -> list[LinkShift]:
    rest = f"level_shifts {NAMED_ENDS} JOIN metrics ON metrics.id = metric_id {where}"
    columns = COLUMNS_OF_ENDS | {"metric": "metrics.name"}
    return database.records(LinkShift, rest, values, columns)


class LevelShifts(Part):
    """The changes of a store; each is open until throughput was measured again."""

    def add(self, shift: LinkShift) -> bool:
        """Record a change, in the caller's transaction; return whether it is new.

        As samples arrive, an old change is found again at about its old place: what begins
        before the last change was found is not a new one.
        """
        database = self._database
        key = {
            **database.ends(shift.src, shift.dst),
            "metric_id": database.row("SELECT id FROM metrics WHERE name = ?", (shift.metric,))[0],
        }
        (known_s,) = database.row(
            "SELECT max(found_at_s) FROM level_shifts "
            "WHERE src_id = :src_id AND dst_id = :dst_id AND metric_id = :metric_id",
            key,
        )
        if known_s is not None and shift.at_s <= known_s:
            return False
        figures = {"at_s": shift.at_s, "before": shift.before, "after": shift.after}
        database.add("level_shifts", {**key, **figures, "found_at_s": shift.found_at_s})
        return True

    def open(self) -> list[Pair]:
        """Return the links of changes after which throughput was not measured, oldest first."""
        found = _shifts(self._database, "WHERE measured_again_at_s IS NULL ORDER BY found_at_s")
        return [(shift.src, shift.dst) for shift in found]

    def found_since(self, at_s: float) -> list[LinkShift]:
        """Return the changes that were settled since a time, the newest first."""
        where = "WHERE found_at_s >= ? ORDER BY found_at_s DESC, src.name, dst.name"
        return _shifts(self._database, where, at_s)

    def close(self, src: str, dst: str) -> None:
        """Record that a probe measured throughput of a link again, or tried to."""
        self._database.change(
            f"UPDATE level_shifts SET measured_again_at_s = ? {_PAIR} "  # noqa: S608
            "AND measured_again_at_s IS NULL",
            (time.time(), src, dst),
        )


# ---- what happened to one link: changes of its level, and of its condition ----------------------

EventKind: TypeAlias = Literal["shift", "leg"]

_CONDITIONS = (
    "SELECT id, at_s, detail FROM events WHERE kind = 'leg' AND subject = ? "
    "AND (at_s < ? OR (at_s = ? AND id < ?)) ORDER BY at_s DESC, id DESC LIMIT ?"
)
Position: TypeAlias = tuple[float, int]
"""Where a page ended: times fall, and at one time states come before changes of level."""
NEWEST: Position = (inf, 2**62)


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """Something that happened to a link."""

    at_s: float  # of a change: when the first sample of the new level was measured
    kind: EventKind  # a change of level, or of the link's condition
    number: int  # tells those of one time apart; negative for changes of level
    found_at_s: float | None = None  # of a change: when the sample was measured that settled it
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    """The levels, in the metric's unit."""
    condition: str | None = None
    condition_before: str | None = None
    """``up``, ``degraded`` or ``down``."""
    reason: str = ""  # why the condition changed, as a clause

    @property
    def position(self) -> Position:
        """For the next page."""
        return float(self.at_s), self.number


def link_events(
    database: Database, src: str, dst: str, *, after: Position = NEWEST, limit: int
) -> list[LinkEvent]:
    """Return changes of a link's level and condition, the newest first.

    Changes of level are those that were kept while the link was watched, and those that are found
    in its newest samples now, which are the ones that the next estimates will respect.
    """
    until_s = min(after[0], _BEYOND)
    kept = _shifts(database, _PAIR, src, dst)
    found: list[LinkEvent] = []
    # The number of a change is that of its metric: two can't begin at the same time.
    for number, metric in enumerate(WITH_A_LEVEL, 1):
        known = [shift for shift in kept if shift.metric == metric]
        known_s = max((shift.found_at_s for shift in known), default=-inf)
        # As samples arrive, an old change is found again at about its old place.
        samples = StoredSamples(database).read(src=src, dst=dst, metric=metric)
        new = [shift for shift in current_samples(samples).shifts if shift.at_s > known_s]
        found += [
            LinkEvent(one.at_s, "shift", -number, one.found_at_s, metric, one.before, one.after)
            for one in (*known, *new)
        ]
    found = [event for event in found if event.position < after]
    for number, at_s, text in database.rows(
        _CONDITIONS, (f"{src}>{dst}", until_s, until_s, after[1], limit)
    ):
        detail = json.loads(text)
        condition = {"condition": detail.get("to"), "condition_before": detail.get("from")}
        reason = str(detail.get("reason", ""))
        found.append(LinkEvent(at_s, "leg", number, **condition, reason=reason))
    return sorted(found, key=lambda event: event.position, reverse=True)[:limit]


# ---- everything measured on a link as a series: samples, and summaries of old ones --------------

_METRICS = (
    "SELECT metrics.name, sum(count), min(first_at_s), max(last_at_s) FROM ("  # noqa: S608
    "SELECT metric_id, count(*) AS count, min(measured_at_s) AS first_at_s, "
    f"max(measured_at_s) AS last_at_s FROM used_samples {_PAIR} GROUP BY metric_id UNION ALL "
    "SELECT metric_id, sum(samples) AS count, min(first_at_s) AS first_at_s, "
    f"max(last_at_s) AS last_at_s FROM sample_summaries {_PAIR} GROUP BY metric_id"
    ") AS found JOIN metrics ON metrics.id = metric_id GROUP BY metrics.name ORDER BY metrics.name"
)
_SUMMARIES = (
    "SELECT first_at_s, last_at_s, samples, least, median, most "  # noqa: S608
    "FROM sample_summaries "
    f"{_PAIR} AND metric_id = (SELECT id FROM metrics WHERE name = ?) "
    "AND last_at_s >= ? AND first_at_s <= ? ORDER BY first_at_s"
)


class MetricSeen(NamedTuple):
    """The number of samples of one metric of a link, and their times."""

    metric: Metric
    samples: int
    first_at_s: float
    last_at_s: float


class LinkSeries(NamedTuple):
    """The measurements of one metric of a link, over some time."""

    samples: Points  # the oldest first
    connections: np.ndarray  # of each sample; 0 where the notion does not apply
    compacted: Points  # summaries of samples that are no longer kept one by one


def metrics_seen(database: Database, src: str, dst: str) -> list[MetricSeen]:
    """Return the measured metrics of a link, by name."""
    rows = database.rows(_METRICS, (src, dst, src, dst))
    return [MetricSeen(metric, int(count), *times_s) for metric, count, *times_s in rows]


def link_series(
    database: Database,
    src: str,
    dst: str,
    metric: Metric,
    *,
    since_s: float = -inf,
    until_s: float = inf,
) -> LinkSeries:
    """Read one metric of a link, from one time (seconds since 1970, UTC) to another, inclusive."""
    since_s, until_s = max(since_s, -_BEYOND), min(until_s, _BEYOND)
    samples = StoredSamples(database)
    rows = samples.read(src=src, dst=dst, metric=metric, since_s=since_s, details=False).rows
    rows = rows[rows["measured_at_s"] <= until_s]
    found = database.rows(_SUMMARIES, (src, dst, metric, since_s, until_s))
    columns = np.array(found, float).reshape(-1, 6).T
    compacted = Points(columns[0], columns[1], columns[2].astype(np.int64), *columns[3:])
    return LinkSeries(points(rows["measured_at_s"], rows["value"]), rows["connections"], compacted)

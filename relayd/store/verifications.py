"""Verifications in the store: the rates that plans reached when they were run.

A transfer's plan has a row for all of its paths together and one for each; a shuffle and a
broadcast have one for each path, between the ends of that path.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from planner.model.link_states import Pair
from planner.model.verification import Verified, VerifiedPath
from probes.samples import Sample
from relayd.store.database import COLUMNS_OF_ENDS, NAMED_ENDS, Part
from relayd.store.events import Events
from relayd.store.samples.ingest import write_live

MOST_READ = 5_000  # newest rows that calibrate plans


class VerificationRow(NamedTuple):
    """The rate that one path of a run carried, or all of them together."""

    plan_id: str
    snapshot_id: str
    src: str
    dst: str
    run: str
    verdict: str
    path: str  # regions joined by ``>``; ``""`` for all paths of a transfer's run together
    connections: int  # on each link, over all VMs
    vm_pairs: int  # over which they were divided
    alone: bool  # false where paths ran at the same time
    low_gbps: float
    expected_gbps: float
    high_gbps: float
    """Predicted, with the error of one measurement."""
    achieved_gbps: float
    at_s: float  # seconds since 1970 (UTC)


Rows: TypeAlias = list[VerificationRow]


class Verifications(Part):
    """The verifications of a store."""

    def record(
        self,
        rows: Sequence[VerificationRow],
        samples: Sequence[Sample],
        events: Sequence[tuple[str, Mapping[str, object]]] = (),
    ) -> int:
        """Store a verification with the samples that follow from it: all or nothing.

        Rows of a transfer's plan as a whole become an event each; `events` are subjects and
        details of further ones. Returns how many samples were new.
        """
        database = self._database
        with database.transaction():
            name = f"verification of plan {rows[0].plan_id}"
            _, accepted = write_live(database, name, samples)
            told: list[tuple[str, Mapping[str, object]]] = []
            for row in rows:
                kept = row._asdict()
                ends = database.ends(kept.pop("src"), kept.pop("dst"))
                database.add("verifications", {**kept, **ends})
                if row.run == "plan" and not row.path:
                    detail = {
                        "plan_id": row.plan_id,
                        "verdict": row.verdict,
                        "expected_gbps": row.expected_gbps,
                        "achieved_gbps": row.achieved_gbps,
                        "held": row.low_gbps <= row.achieved_gbps <= row.high_gbps,
                    }
                    told.append((f"{row.src}>{row.dst}", detail))
            for subject, one in (*told, *events):
                Events(database).add("verification", subject, one)
        return accepted

    def list(self) -> Rows:
        """Return all that is kept, oldest first."""
        return self._read("ORDER BY verifications.id")

    def last_id(self) -> int:
        """Return the id of the newest row; 0 if there is none."""
        return self._database.last_id("verifications")

    def by_pair(self) -> dict[Pair, Verified]:
        """Return the last verification of each pair of regions, and its paths that ran alone."""
        last: dict[Pair, VerificationRow] = {}
        paths: dict[Pair, dict[str, VerifiedPath]] = defaultdict(dict)
        for row in self._read("ORDER BY at_s DESC, verifications.id DESC LIMIT ?", MOST_READ):
            pair = (row.src, row.dst)
            if row.run == "plan" and not row.path:
                last.setdefault(pair, row)
            elif row.path.count(">") == 2 and row.alone and row.path not in paths[pair]:
                each = max(1, row.connections // row.vm_pairs)
                paths[pair][row.path] = VerifiedPath(
                    tuple(row.path.split(">")), each, row.achieved_gbps / row.vm_pairs, row.at_s
                )
        return {
            pair: Verified(
                *pair,
                row.verdict,
                row.snapshot_id,
                *row[-5:],  # from the bounds of the prediction to the time
                paths=tuple(paths[pair].values()),
            )
            for pair, row in last.items()
        }

    def _read(self, order: str, *values: object) -> Rows:
        rest = f"verifications {NAMED_ENDS} {order}"
        return self._database.records(VerificationRow, rest, values, COLUMNS_OF_ENDS)

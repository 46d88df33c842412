"""Samples that no snapshot knows, and why not."""

from __future__ import annotations

from planner.model.network import NewerSamples
from relayd.store.database import Database
from relayd.store.metadata import Metadata

PATIENCE_S = 60.0
"""For so long nothing is amiss: samples come in batches, and a snapshot of several takes time."""
BETWEEN_S = 1800.0
"""The same where there is a snapshot: watchers make the next 15 minutes later."""
BEGUN, FAILED = "snapshot_begun_s", "snapshot_failed_s"
"""Names of the times at which a snapshot was last begun, and at which one last failed."""


def newer_samples(
    database: Database, through: int, made_at_s: float, now_s: float
) -> NewerSamples | None:
    """Return what is not in a snapshot and should be by now; None if nothing is amiss.

    Parameters
    ----------
    through : int
        Id of the newest sample that it takes into account; 0 without a snapshot.
    made_at_s, now_s : float
        When it was made, and the time now; seconds since 1970 (UTC).
    """
    samples, since_s = database.row(
        "SELECT sum(accepted), min(imported_at_s) FROM batches WHERE last_sample_id > ?", (through,)
    )
    if samples is None:
        return None
    samples, metadata = int(samples), Metadata(database)
    failed_s = metadata.get(FAILED)
    if failed_s is not None and failed_s > made_at_s:
        return NewerSamples(samples, since_s, "failed", failed_s)
    begun_s = metadata.get(BEGUN)
    if begun_s is not None and begun_s > made_at_s and now_s - begun_s >= PATIENCE_S:
        return NewerSamples(samples, since_s, "begun", begun_s)
    if now_s - since_s < (BETWEEN_S if through else PATIENCE_S):
        return None
    return NewerSamples(samples, since_s, "none")

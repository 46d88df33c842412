"""Samples that are stored and not in an answer."""

from __future__ import annotations

from planner.model.network import Network
from relayd.times import utc_text

_WHY = {
    "none": "no snapshot has been made of them. `relayd store rebuild` makes one.",
    "begun": "a snapshot of them was begun at {at} and has not ended. If it was interrupted, "
    "`relayd store rebuild` makes one.",
    "failed": "making a snapshot of them failed at {at}. `relayd store rebuild` tries again, and "
    "says what is wrong.",
}


def newer_sample_notes(network: Network) -> tuple[str, ...]:
    """Return a sentence on samples that the network's snapshot does not know, if there are any."""
    newer = network.newer_samples
    if newer is None:
        return ()
    why = _WHY[newer.reason].format(at=utc_text(newer.tried_at_s or 0.0))
    are = "sample is" if newer.samples == 1 else "samples are"
    since = utc_text(newer.since_s)
    return (f"{newer.samples:,} {are} not in this answer, stored since {since}: {why}",)

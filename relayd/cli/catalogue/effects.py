"""What other prices do to plans: a few transfers, planned with both."""

from __future__ import annotations

from typing import NamedTuple

from planner.model.errors import RelaydError
from planner.transfer.plan import Plan
from relayd.sources.wan import Wan

VOLUME_GB = 500.0
# Between and within the providers, near and far, in both directions of the dearest.
TRANSFERS = (
    ("aws:us-east-1", "aws:sa-east-1"),
    ("aws:us-east-1", "azure:westeurope"),
    ("aws:eu-central-1", "gcp:asia-northeast1"),
    ("azure:eastus", "aws:us-west-2"),
    ("azure:westeurope", "gcp:us-central1"),
    ("azure:brazilsouth", "azure:eastus"),
    ("azure:southeastasia", "aws:eu-west-1"),
    ("gcp:us-central1", "azure:eastus"),
    ("gcp:southamerica-east1", "aws:us-east-1"),
    ("gcp:europe-west1", "gcp:asia-southeast1"),
)


class PlanEffect(NamedTuple):
    """A transfer's plan before and after."""

    src: str
    dst: str
    before: Plan
    after: Plan

    @property
    def changes(self) -> bool:
        """Whether the plan is another one, or its cost moves by over 0.5 %."""
        before, after = self.before.cost_usd.total, self.after.cost_usd.total
        return self.before.verdict != self.after.verdict or abs(after - before) > 0.005 * before


def effects(before: Wan, after: Wan) -> list[PlanEffect]:
    """Plan the transfers with two catalogues; those that can't be planned are left out."""
    found = []
    for src, dst in TRANSFERS:
        try:
            plans = [wan.plan(src, dst, volume_gb=VOLUME_GB) for wan in (before, after)]
        except RelaydError:
            continue  # the user's rules or files leave nothing to compare
        found.append(PlanEffect(src, dst, *plans))
    return found

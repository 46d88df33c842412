"""A plan in progress: keep to it, or change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.model.answer import Answer
from planner.replanning.plan import Replan
from planner.replanning.progress import in_progress
from planner.replanning.recommendation import replan
from relayd.files.plans import document_of
from relayd.questions.circumstances import Circumstances

if TYPE_CHECKING:
    from relayd.sources.wan import Wan


def replan_in_progress(
    wan: Wan,
    plan: Answer | Mapping[str, Any] | str,
    circumstances: Circumstances,
    *,
    moved_gb: float | Mapping[tuple[str, str], float],
    elapsed_s: float,
    changes: int,
) -> Replan:
    """Answer :meth:`relayd.sources.wan.Wan.replan`."""
    content = document_of(plan)
    moved = moved_gb
    if isinstance(moved_gb, Mapping):
        moved = {
            (wan.resolve(src, "moved").region_id, wan.resolve(dst, "moved").region_id): gb
            for (src, dst), gb in moved_gb.items()
        }
    regions = in_progress(content, moved, elapsed_s).course.regions
    network = wan.network_of(regions, circumstances.checked_vm_types(wan))
    prices = circumstances.prices(wan, network)
    return replan(content, moved, elapsed_s, network, prices, changes=changes)

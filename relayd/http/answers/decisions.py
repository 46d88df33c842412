"""What a decision about samples would do."""

from __future__ import annotations

from typing import Any

from relayd.snapshots.effects import effects_of
from relayd.sources.wan import Wan
from relayd.store import Location, Store, open_store
from relayd.store.samples.decisions import Selection, selected
from relayd.store.samples.quarantine import to_decide

MOST_EFFECTS = 100


def samples_meant(_wan: Wan, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return about how many samples a decision is, and the last there is; in a worker.

    Raises
    ------
    InputError
        If it can't be made.
    """
    through = request["through"]
    with open_store(location, mode="read") as store:
        through = store.samples.last_id() if through is None else through
        found = _meant(store, {**request, "through": through})
    return {"samples": len(found), "through": through}


def decision_effects(wan: Wan, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return what a decision would do, as JSON types; in a process, because it takes a while.

    Raises
    ------
    InputError
        If it can't be made.
    """
    decision = request["decision"]
    with open_store(location, mode="read") as store:
        meant = _meant(store, request)
        if decision == "accept":
            changed = effects_of(store, wan.catalogue, accepted=meant)
        else:
            changed = effects_of(store, wan.catalogue, change=(decision, frozenset(meant)))
    shown = [effect._asdict() for effect in changed[:MOST_EFFECTS]]
    return {"total": len(changed), "changed": shown}


def _meant(store: Store, request: dict[str, Any]) -> list[Any]:
    """Return the samples in quarantine that a decision is about, or the ids of others."""
    database, decision = store.database, request["decision"]
    if decision in ("accept", "reject"):
        return to_decide(database, request["quarantined"], accepting=decision == "accept")
    selection = Selection(**request["selection"])
    return selected(database, decision, selection, through=request["through"])

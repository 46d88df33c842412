"""Incidents of links, from the events of their conditions and from their states."""

from __future__ import annotations

from planner.model.link_states import LinkState
from relayd.store.events import Event
from relayd.times import utc_text
from relayd.transfers.incidents import Incident, incidents

A, B, C = "aws:us-east-1", "gcp:us-east1", "azure:eastus"


def event(at_s: float, ends: tuple[str, str], before: str, after: str) -> Event:
    detail = {"from": before, "to": after, "reason": f"seen at {at_s:g}"}
    return Event(int(at_s), at_s, "leg", ">".join(ends), detail)


def test_changes_of_condition_become_incidents() -> None:
    events = [
        event(5, (C, A), "down", "up"),  # began before all that is known
        event(10, (A, B), "up", "degraded"),
        event(20, (A, B), "degraded", "down"),
        event(30, (A, B), "down", "degraded"),
        event(40, (A, B), "degraded", "up"),
        event(50, (A, B), "up", "degraded"),
        event(60, (B, C), "up", "down"),  # whose watcher has stopped since
    ]
    states = {
        (A, B): LinkState(A, B, "degraded", utc_text(50), "it loses packets"),
        (C, B): LinkState(C, B, "down", utc_text(3), "no reply"),
    }
    assert incidents(events, states) == [
        Incident(C, B, "down", 3, reason="no reply"),
        Incident(A, B, "degraded", 50, reason="it loses packets"),
        Incident(B, C, "down", 60, None, True, "seen at 60", health="stale"),
        Incident(A, B, "down", 10, 40, True, "seen at 30", health="good"),
        Incident(C, A, "down", None, 5, True, health="good"),
    ]


def test_an_incident_touches_what_began_before_its_end() -> None:
    lasting, over = Incident(A, B, "down", 10), Incident(A, B, "down", 10, 40, True)
    unseen = Incident(A, B, "down", 10, None, True)
    assert lasting.lasted_into(1e9)
    assert [over.lasted_into(began_s) for began_s in (0, 39, 41)] == [True, True, False]
    assert [unseen.lasted_into(began_s) for began_s in (0, 11)] == [True, False]

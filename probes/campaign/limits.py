"""What a campaign keeps to: its budget, its time, and how much runs at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """The limits of a campaign.

    Attributes
    ----------
    budget_usd : float
    deadline_s : float
        By ``time.monotonic()``; no probe starts that would end after it.
    attempts : int
        For one probe.
    backoff_s : float
        Before the second attempt; four times as long before each further one.
    jitter_s : float
        Each bandwidth probe starts up to this much later: some clouds dip at full and half
        minutes, and tests that begin together meet in the same queues.
    at_once : int
        Bandwidth probes at a time.
    pings_at_once, pings_of_host : int
        Round-trip probes at a time, in all and from one host.
    host_failures : int
        After so many failures in a row a host is skipped until the end of the stage.
    """

    budget_usd: float = float("inf")
    deadline_s: float = float("inf")
    attempts: int = 3
    backoff_s: float = 1.0
    jitter_s: float = 0.25
    at_once: int = 1_000
    pings_at_once: int = 64
    pings_of_host: int = 4
    host_failures: int = 2

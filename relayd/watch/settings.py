"""Settings of a watcher: intervals, budget, quiet hours, webhook."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import time
from math import inf

from planner.model.errors import InputError
from probes.campaign.specification import CampaignSpec
from probes.liveness.link_health import HealthPolicy
from relayd.watch.webhook import Webhook

DAY_S = 86400.0
LEAST_REGRET_SHARE = 0.001
FIRST_S = 1.0
"""First part of a test in campaigns that keep a regret; the only one where it agrees."""
LEAST_INTERVAL_S, MOST_INTERVAL_S = 2.0, 3600.0


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The hours of each day in which no throughput is measured, in seconds after midnight UTC.

    The end may be on the next day.
    """

    begin_s: float
    end_s: float

    @classmethod
    def parse(cls, text: str, field_name: str = "--quiet-hours") -> QuietHours:
        """Read hours such as ``22:00-06:00``; raises InputError if it is not two times of day."""
        try:
            begin, end = (time.fromisoformat(word.strip().zfill(5)) for word in text.split("-"))
        except ValueError:
            problem = "is not a time of day to another"
            remedy = "Write UTC times, such as 22:00-06:00."
            raise InputError(field_name, problem, value=text, remedy=remedy) from None
        begin_s, end_s = (3600.0 * at.hour + 60 * at.minute for at in (begin, end))
        if begin_s == end_s:
            raise InputError(field_name, "begins and ends at the same time", value=text)
        return cls(begin_s, end_s)

    def left_s(self, at_s: float) -> float:
        """Return the seconds until they end; 0 outside of them."""
        since_s = (at_s - self.begin_s) % DAY_S
        length_s = (self.end_s - self.begin_s) % DAY_S
        return length_s - since_s if since_s < length_s else 0.0

    def begins_in_s(self, at_s: float) -> float:
        """Return the seconds until they begin; 0 inside of them."""
        return 0.0 if self.left_s(at_s) else (self.begin_s - at_s) % DAY_S


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Settings of a watcher; checked when made.

    With a ``regret`` (:mod:`probes.campaign.regret`), campaigns keep the fleet below it: links that
    have drifted are measured day by day, no more of them than that takes.
    """

    daily_budget_usd: float  # most to spend on egress in a UTC day, probes and campaigns together
    interval_s: float = 30.0  # within which an outage is to be noticed
    pairs: tuple[tuple[str, str], ...] = ()  # of hosts to watch; empty for all pairs of regions
    hold_intervals: int = 5  # that a link must be well before it is used again
    campaign_every_s: float = 7 * DAY_S  # infinity for campaigns after changes only
    regret: float | None = None  # None to measure by age alone
    spec: CampaignSpec = field(default_factory=CampaignSpec)  # of a campaign that is due by age
    quiet: QuietHours | None = None
    webhook: Webhook | None = None
    keep_every_s: float = 600.0  # between samples made of the liveness probes of a link
    snapshot_every_s: float = 900.0  # at least
    snapshots_kept: int = 300
    retain_s: float = 90 * DAY_S  # age at which samples are summarised; infinity for never

    def __post_init__(self) -> None:
        budget_usd, interval_s, hold = self.daily_budget_usd, self.interval_s, self.hold_intervals
        every_s, retain_s, regret = self.campaign_every_s, self.retain_s, self.regret
        for option, is_right, problem, value in (
            ("--daily-budget", 0 <= budget_usd < inf, "must be an amount of 0 or more", budget_usd),
            (
                "--interval",
                LEAST_INTERVAL_S <= interval_s <= MOST_INTERVAL_S,
                "must be between 2s and 1h",
                f"{interval_s:g} s",
            ),
            ("--hold", 1 <= hold <= 1000, "must be 1 to 1000 intervals", hold),
            ("--campaign-every", every_s >= 60, "must be at least 60 s", f"{every_s:g} s"),
            ("--retain", retain_s >= DAY_S, f"must be at least {DAY_S:g} s", f"{retain_s:g} s"),
            (
                "--regret",
                regret is None or LEAST_REGRET_SHARE <= regret < 1,
                f"must be at least {LEAST_REGRET_SHARE:g} and below 1",
                regret,
            ),
        ):
            if not is_right:
                raise InputError(option, problem, value=value)

    @property
    def campaign(self) -> CampaignSpec:
        """Specification of a campaign that is due by age; it ends at a low enough regret."""
        if self.regret is None:
            return self.spec
        return replace(self.spec, threshold=self.regret, aggregate_first_s=FIRST_S)

    @property
    def policy(self) -> HealthPolicy:
        """The thresholds between a link's conditions."""
        return HealthPolicy(hold_s=self.hold_intervals * self.interval_s)

    @property
    def valid_s(self) -> float:
        """Time for which a state holds after it was last confirmed."""
        return max(10 * self.interval_s, 900.0)


def day_left_s(at_s: float) -> float:
    """Return the seconds until the end of the UTC day."""
    return DAY_S - at_s % DAY_S

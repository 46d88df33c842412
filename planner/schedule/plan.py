"""A schedule: which transfers are admitted, and at what rate each sends when and over what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Cost, Recommendation
from planner.model.estimate import AddressKind
from planner.model.text.blocks import answer_text, path_text, private_text, vms_text
from planner.model.text.figures import figure
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import duration_text, gbps_text, usd_text, volume_text

ScheduleVerdict: TypeAlias = Literal["admitted", "refused", "best effort"]
AdmissionObjective: TypeAlias = Literal["value", "number"]
BAR = 40
"""Characters of a line of time."""
SENDING, WAITING, OUTSIDE = "#", "-", " "


@dataclass(frozen=True, slots=True)
class PathRate:
    """What one path carries in a period.

    Attributes
    ----------
    regions : tuple of str
        Two for direct, three through a relay. What is stored at a relay has two paths, at different
        times: from the source to the relay, and from the relay to the destination.
    connections : int
        TCP connections on each link, over all VMs.
    addresses : tuple of AddressKind
        Over which kind of address each link is.
    """

    regions: tuple[str, ...]
    throughput_gbps: float
    connections: int
    addresses: tuple[AddressKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a transfer sends at constant rates."""

    start_s: float
    end_s: float
    throughput_gbps: float
    paths: tuple[PathRate, ...]

    def moved_gbit(self, src: str, dst: str) -> dict[str, float]:
        """Return the change of the volume at the destination and at each relay.

        Parameters
        ----------
        src, dst : str
            Of the transfer.
        """
        rates = defaultdict(float, {dst: self.throughput_gbps})
        for path in self.paths:
            first, last, rate = path.regions[0], path.regions[-1], path.throughput_gbps
            if last != dst:
                rates[dst] -= rate
                rates[last] += rate
            if first != src:
                rates[first] -= rate
        return {region: rate * (self.end_s - self.start_s) for region, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class StoredVolume:
    """The volume of a transfer stored at a relay, and when.

    Attributes
    ----------
    most_gb : float
        The most stored at a time.
    usd : float
        The cost of this storage from `now_s` on.
    """

    region: str
    start_s: float
    end_s: float
    most_gb: float
    usd: float


@dataclass(frozen=True, slots=True)
class MoreVms:
    """VMs that would suffice.

    Attributes
    ----------
    vms : dict
        Region to how many more.
    at_least : int
        Proven: no fewer suffice.
    """

    vms: dict[str, int]
    at_least: int


@dataclass(frozen=True, slots=True)
class Remedies:
    """Changes that would each admit a refused transfer while admitted ones stay admitted.

    VMs are for this transfer alone: another refused one of higher priority would take them.

    Attributes
    ----------
    volume_gb : float
        The most of it that can be moved by the deadline; 0 if there is no time at all.
    deadline_s : float
        The earliest deadline that can be met for all of it.
    more_vms : MoreVms | None
        None where no number of VMs is enough, because the window is too short to begin.
    """

    volume_gb: float
    deadline_s: float
    more_vms: MoreVms | None


@dataclass(frozen=True, slots=True)
class TransferSchedule:
    """One transfer and its verdict.

    Attributes
    ----------
    verdict : ScheduleVerdict
        ``admitted``: it ends by its deadline; ``refused``: its deadline can't be promised; ``best
        effort``: it has no deadline and uses the capacity that the others leave.
    end_s : float | None
        When it ends, getting up to speed included; None if it is refused.
    slack_s : float | None
        From its end to its deadline.
    periods : tuple of Period
        In order of time, with pauses left out.
    remedies : Remedies | None
        For one that is refused.
    stored : tuple of StoredVolume
        Volumes stored at relays with disk, in order of time.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    start_s: float
    deadline_s: float | None
    priority: int
    value_usd: float | None
    verdict: ScheduleVerdict
    end_s: float | None
    slack_s: float | None
    egress_usd: float
    periods: tuple[Period, ...]
    remedies: Remedies | None
    stored: tuple[StoredVolume, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionClass:
    """Transfers with deadlines that were decided together, after those of higher classes.

    Attributes
    ----------
    objective : AdmissionObjective
        What was to be the greatest: the total value in USD, or the number of transfers, where none
        of them has a value.
    transfers, admitted : int
        How many there are, and how many are admitted.
    reached, bound : float
        Of the objective: the value reached, and the most possible next to the higher classes.
    """

    priority: int
    objective: AdmissionObjective
    transfers: int
    admitted: int
    reached: float
    bound: float


@dataclass(frozen=True, slots=True)
class Busy:
    """How full a region's VMs are until the schedule ends.

    Attributes
    ----------
    constraint : str
        Which of their limits is fullest at its peak.
    peak_share, mean_share : float
        Of that limit, at the fullest moment and over the whole time.
    """

    region: str
    constraint: str
    peak_share: float
    mean_share: float


@dataclass(frozen=True, slots=True)
class TariffUse:
    """The volume that a schedule sends under a tariff, and when its monthly cost pays off.

    Attributes
    ----------
    volume_gb : float
        Sent under it from `now_s` on.
    saved_usd : float
        The extra cost if the meter also counted this volume.
    break_even_gb : float | None
        Monthly volume at which it saves its monthly cost, if each GB saves as much as here.
        None if it costs nothing a month, or saves nothing.
    full_gb : float | None
        The most that can be sent under it in a month, 730 hours; None without a limit.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    saved_usd: float
    monthly_usd: float
    break_even_gb: float | None
    full_gb: float | None


@dataclass(frozen=True, slots=True)
class SchedulePlan(Recommendation):
    """Transfers admitted or refused, and when each sends.

    Attributes
    ----------
    now_s : float
        The time from which this was planned; everything before it has happened.
    end_s : float
        When the last transfer ends.
    admitted, refused, best_effort : int
        How many transfers have each verdict.
    bound_usd : float
        No schedule of the admitted transfers has lower egress fees from `now_s` on, proven.
    value_usd : float
        Total value of the admitted transfers.
    vms : dict
        Region to the most VMs that are in use at a time.
    admission : tuple of AdmissionClass
        In the order decided: what a schedule in progress promised, then by priority, and of equal
        priorities those that have a value first.
    connections : dict
        Region to the most TCP connections that a VM there needs at a time.
    tariffs : tuple of TariffUse
        In the order asked. What they cost a month is not part of `cost_usd`.
    storage_usd : float
        For volumes stored at relays from `now_s` on; part of the total of `cost_usd`.
    vm_start_s : float
        Time that VMs take to start, of which none sends.
    """

    request: dict[str, Any]
    reason: str
    now_s: float
    end_s: float
    admitted: int
    refused: int
    best_effort: int
    volume_gb: float
    relayed_share: float
    cost_usd: Cost
    bound_usd: float
    value_usd: float
    transfers: tuple[TransferSchedule, ...]
    vms: dict[str, int]
    busiest: tuple[Busy, ...] = ()
    admission: tuple[AdmissionClass, ...] = ()
    connections: dict[str, int] = field(default_factory=dict)
    tariffs: tuple[TariffUse, ...] = ()
    storage_usd: float = 0.0
    vm_start_s: float = 0.0

    def transfer(self, transfer_id: str) -> TransferSchedule:
        """Return one transfer by its id."""
        return {transfer.id: transfer for transfer in self.transfers}[transfer_id]

    def text(self, page: TextPage = PLAIN, *, periods: bool = False) -> str:
        """Return the text for people: verdict, transfers with bars of time, what would do."""
        cost, transfers = self.cost_usd, self.transfers
        stored = [f"{one.id}: {_stored(volume)}" for one in transfers for volume in one.stored]
        storage = f", {usd_text(self.storage_usd)} storage" if stored else ""
        since = f" from {duration_text(self.now_s)} on" if self.now_s else ""
        remedies = [f"{one.id}: {_remedies(one)}" for one in transfers if one.remedies]
        basis = "the low bounds of" if self.request["rates"] == "low" else "what is expected of"
        return answer_text(
            page,
            self,
            f"{self.admitted} admitted, {self.refused} refused, {self.best_effort} best effort.",
            "",
            _transfers(page, self),
            _bars(self),
            _periods(page, self) if periods else "",
            page.filled(
                f"Cost{since}: {usd_text(cost.egress)} egress{storage} and {usd_text(cost.vm)} "
                f"VMs. {self.relayed_share:.0%} is relayed. VMs at most: "
                f"{vms_text(self.vms) or 'none'}."
            ),
            page.listed("Stored", stored),
            page.listed("Tariffs", map(_tariff, self.tariffs)),
            page.listed("What would do", remedies),
            vm_start_s=self.vm_start_s,
            sure=f"Promises rest on {basis} links and caps.",
        )

    def __repr__(self) -> str:
        """Describe the schedule in one line."""
        return (
            f"<SchedulePlan {self.plan_id}: {self.admitted} admitted, {self.refused} refused, "
            f"{self.best_effort} best effort, {self.volume_gb:.0f} GB, "
            f"${self.cost_usd.total:.2f}>"
        )


def _transfers(page: TextPage, plan: SchedulePlan) -> str:
    return page.table_of(
        plan.transfers,
        "transfer=id | =link | volume=volume_gb | start | deadline | verdict | ends=end | "
        "$ egress=usd",
        start=lambda one: _clock(one.start_s),
        deadline=lambda one: _clock(one.deadline_s),
        end=lambda one: _clock(one.end_s),
        usd=lambda one: figure(one, "egress_usd") if one.periods else "-",
    )


def _bars(plan: SchedulePlan) -> str:
    """Return a line of time for each transfer that is sent."""
    sent = [transfer for transfer in plan.transfers if transfer.periods]
    last_s = max((t.deadline_s or t.end_s or 0.0 for t in sent), default=0.0)
    last_s = max([last_s, *(t.end_s or 0.0 for t in sent)])
    if not sent or last_s <= 0:
        return "Nothing is sent."
    width = max(len(transfer.id) for transfer in sent)
    step = last_s / BAR
    lines = []
    for transfer in sent:
        bar = ""
        for at in range(BAR):
            begin, end = at * step, (at + 1) * step
            if any(p.start_s < end and p.end_s > begin for p in transfer.periods):
                bar += SENDING
            elif begin < (transfer.deadline_s or transfer.end_s or 0.0) and end > transfer.start_s:
                bar += WAITING
            else:
                bar += OUTSIDE
        lines.append(f"{transfer.id.ljust(width)}  |{bar}|")
    scale = f"{' ' * width}  0{duration_text(last_s).rjust(BAR + 1)}"
    return "\n".join([*lines, scale, f"{SENDING} sends, {WAITING} could"])


def _periods(page: TextPage, plan: SchedulePlan) -> str:
    rows = [
        (
            transfer.id,
            _clock(period.start_s),
            _clock(period.end_s),
            gbps_text(period.throughput_gbps),
            str(sum(path.connections for path in period.paths)),
            ", ".join(_path(transfer, path) for path in period.paths),
        )
        for transfer in plan.transfers
        for period in transfer.periods
    ]
    return page.table(("transfer", "from", "to", "Gbit/s", "connections", "paths"), rows)


def _path(transfer: TransferSchedule, path: PathRate) -> str:
    """Return a path in words; into storage it ends at a relay, and out of it begins there."""
    way = path_text(path)
    if path.regions[-1] != transfer.dst:
        way = f"to {path.regions[-1]}{private_text(path)}"
    elif path.regions[0] != transfer.src:
        way = f"from {path.regions[0]}{private_text(path)}"
    return f"{way} {gbps_text(path.throughput_gbps)}"


def _stored(stored: StoredVolume) -> str:
    return (
        f"up to {volume_text(stored.most_gb)} at {stored.region} from {_clock(stored.start_s)} to "
        f"{_clock(stored.end_s)}, {usd_text(stored.usd)}"
    )


def _remedies(transfer: TransferSchedule) -> str:
    remedies = transfer.remedies
    assert remedies
    ways = [f"a deadline of {_clock(remedies.deadline_s)}"]
    if remedies.more_vms:
        more = remedies.more_vms
        where = ", ".join(f"{n} more at {region}" for region, n in more.vms.items())
        fewer = f" (no fewer than {more.at_least} would do)"
        ways.append(f"VMs: {where}{fewer * (sum(more.vms.values()) != more.at_least)}")
    if remedies.volume_gb:
        ways.append(f"at most {volume_text(remedies.volume_gb)} by its deadline")
    return "; or ".join(ways)


def _tariff(use: TariffUse) -> str:
    """Return the volume that uses a tariff, and when its month pays."""
    said = f"{use.id} ({use.src} -> {use.dst}): "
    if not use.volume_gb:
        return f"{said}nothing is sent by it"
    said += f"{volume_text(use.volume_gb)} are sent by it, {usd_text(use.saved_usd)} less"
    if use.break_even_gb is None:
        return said
    said += (
        f"; its {usd_text(use.monthly_usd)} a month are earned by "
        f"{volume_text(use.break_even_gb)}, {use.break_even_gb / use.volume_gb:.1f} times as much"
    )
    if use.full_gb is not None and use.full_gb < use.break_even_gb:
        said += f", but at most {volume_text(use.full_gb)} can be sent by it a month: never"
    return said


def _clock(seconds: float | None) -> str:
    """Return a time on the schedule's clock, as hours, minutes and seconds."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"

"""The base of all answers: ids, JSON, and the parts that several of them have.

Why it is so: docs/decisions/08-words-of-answers.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field, fields, is_dataclass
from hashlib import blake2b
from html import escape
from math import isfinite
from typing import Any, Literal, TypeVar

import orjson

from planner.model.aliases import Resolution
from planner.model.estimate import AddressKind
from planner.model.network import Snapshot
from planner.model.text.figures import neutralised
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import gbps_text

ID_DIGITS = 12

A = TypeVar("A", bound="Recommendation")


class Answer:
    """Base of recommendations, which turn into plain values and into JSON."""

    __slots__ = ()

    reason: str

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people, laid out for a page.

        Questions name flags of further parts; see :mod:`relayd.questions.question`. Names in it are
        as they were given: :func:`~planner.model.text.figures.neutralised` is for what shows it.
        """
        return page.filled(self.reason)

    def __str__(self) -> str:
        """Return the text as ``print`` shows it, without control characters of others."""
        return neutralised(self.text())

    def model_dump(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return the plan as nested dicts; with ``mode="json"``, of JSON types alone."""
        content = dumped(self, as_json=mode == "json")
        assert isinstance(content, dict)
        return content

    def model_dump_json(self, indent: int | None = None) -> str:
        """Return the plan as a JSON document (RFC 8259: no NaN, no infinity)."""
        return json.dumps(self.model_dump("json"), indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        """Show in notebooks what ``print`` shows."""
        return f"<pre>{escape(str(self), quote=False)}</pre>"


@dataclass(frozen=True, slots=True)
class FeeLine:
    """A fee besides egress, as a bill has it.

    Attributes
    ----------
    unit : str
        What is counted, such as ``GB`` or ``hour``.
    """

    name: str
    quantity: float
    unit: str
    usd_per_unit: float
    usd: float


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars for the whole transfer."""

    egress: float
    vm: float
    total: float

    @classmethod
    def of(cls, egress_usd: float, vm_usd: float) -> Cost:
        """Return a cost with its total."""
        return cls(egress_usd, vm_usd, egress_usd + vm_usd)


@dataclass(frozen=True, slots=True)
class HeldCapacity:
    """Capacity of one place that transfers under way hold, and what they leave.

    Attributes
    ----------
    kind : {"pool", "vms", "interconnect"}
        VMs that several transfers share; VMs of their own, against quotas; a private line.
    place : str
        The region, or the interconnect's name.
    transfers : int
    vms : int
        Of their own.
    vms_left : int | None
        That quotas allow; None where none is stated.
    egress_gbps, ingress_gbps : float
        Held.
    egress_gbps_left, ingress_gbps_left : float | None
        None where nothing limits it.
    frees_at_s : float | None
        When the first of them is expected to end, seconds since 1970 (UTC).
    """

    kind: Literal["pool", "vms", "interconnect"]
    place: str
    transfers: int
    vms: int
    vms_left: int | None
    egress_gbps: float
    ingress_gbps: float
    egress_gbps_left: float | None
    ingress_gbps_left: float | None
    frees_at_s: float | None

    @property
    def limits(self) -> bool:
        """Whether it takes anything from a plan."""
        return self.kind != "vms" or self.vms_left is not None

    def __str__(self) -> str:
        """Say it in a sentence."""
        if self.transfers == 1:
            who, hold, run = "1 transfer under way", "holds", "runs"
        else:
            who, hold, run = f"{self.transfers} transfers under way", "hold", "run"
        if self.kind == "vms":
            left = "no quota is stated, so they take nothing from this plan"
            if self.vms_left is not None:
                left = f"quotas leave {self.vms_left} more"
            vms = f"{self.vms} VM{'s' if self.vms > 1 else ''}"
            return f"{who} {run} {vms} at {self.place}: {left}."
        held = f"{gbps_text(self.egress_gbps)} Gbit/s sent"
        if self.kind == "interconnect":
            left = "" if self.egress_gbps_left is None else gbps_text(self.egress_gbps_left)
            return f"{who} {hold} {held} over the interconnect {self.place}: {left} is left."
        rates = (self.egress_gbps_left, self.ingress_gbps_left)
        sent, received = (gbps_text(left or 0.0) for left in rates)
        return (
            f"{who} {hold} {held} and {gbps_text(self.ingress_gbps)} received of the pool at "
            f"{self.place}: {sent} and {received} are left."
        )


@dataclass(frozen=True, slots=True)
class WithoutOthers:
    """The answer as it would be if no other transfer held anything."""

    duration_s: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class Recommendation(Answer):
    """An answer to a question, on a snapshot; see :func:`identified` for its id.

    The same object from the library, the command line (``--json``) and the HTTP service. Keys may
    be added, never renamed or removed.
    """

    plan_id: str
    snapshot: Snapshot
    fees: tuple[FeeLine, ...] = field(default=(), kw_only=True)
    """Fees besides egress, which the cost contains: those per GB in ``egress``, those per hour in
    ``vm``."""
    outdated: tuple[str, ...] = field(default=(), kw_only=True)
    """What it rests on that is too old to rely on, and what renews it."""
    warnings: tuple[str, ...] = field(default=(), kw_only=True)
    """What a reader should know besides the answer; those of `outdated` come first."""
    resolutions: tuple[Resolution, ...] = field(default=(), kw_only=True)
    """Which regions were taken for names that fit several, and the others."""
    held: tuple[HeldCapacity, ...] = field(default=(), kw_only=True)
    """The capacity that transfers under way hold where this answer takes some."""
    without_others: WithoutOthers | None = field(default=None, kw_only=True)
    """The answer without them; None where it is the same, or has no single duration and cost."""
    starts_at_s: float | None = field(default=None, kw_only=True)
    """With `queue`: when others leave enough by their forecasts, seconds since 1970 (UTC); None
    for now."""


class PlanOnVms(Recommendation):
    """A plan that says which VMs to run, how many in each region."""

    __slots__ = ()

    duration_s: float
    cost_usd: Cost
    vms: dict[str, int]
    vcpus: dict[str, int]
    vm_types: dict[str, str]


@dataclass(frozen=True, slots=True)
class Bounded:
    """A figure with its bounds."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A binding constraint and what one unit more of it would bring."""

    constraint: str
    region: str
    gain_per_unit: float
    unit: str


@dataclass(frozen=True, slots=True)
class AdviceOutcome:
    """The answer to the question as an advice changes it."""

    throughput_gbps: float
    duration_s: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do, its effect, and what it adds to the cost of the plan (negative: saves).

    Attributes
    ----------
    change : dict | None
        The fields of the request to change; ``{**plan.request, **change}`` asks again. None where
        the advice is about something else than the request, such as a host's settings.
    outcome : AdviceOutcome | None
        The answer to that question.
    """

    action: str
    effect: str
    cost_usd: float
    change: dict[str, Any] | None = None
    outcome: AdviceOutcome | None = None


@dataclass(frozen=True, slots=True)
class OneMoreVm:
    """The least gain from one more VM in a region, or at each end of a link.

    A link is ``source -> destination``: where a path is the limit and both ends have equally many.
    """

    region: str
    duration_s: float
    saved_s: float


@dataclass(frozen=True, slots=True)
class PathShare:
    """One path of a plan and what it carries."""

    regions: tuple[str, ...]  # two for direct, three through a relay
    throughput_gbps: float
    share: float  # of the volume between its ends
    connections: int  # TCP connections on each link, over all VMs
    addresses: tuple[AddressKind, ...] = field(default=(), kw_only=True)
    """Over which kind of address each link is."""


def identified(answer: A, *evidence: object, without: Collection[str] = ()) -> A:
    """Give an answer an id of all that it says, so that no two share one, and return it.

    An answer says what was asked, names the snapshot and shows every figure that follows from them,
    from prices and from link states: the same answer has the same id wherever it is given. Fields
    that change with the clock, such as sentences that say how old a measurement is, are left out;
    the evidence is what these rest on.
    """
    out = {"plan_id", *without}
    shown = [getattr(answer, f.name) for f in fields(answer) if f.name not in out]
    content = orjson.dumps([*shown, *evidence], repr, orjson.OPT_NON_STR_KEYS)
    # A copy would cost a third of all this.
    object.__setattr__(answer, "plan_id", blake2b(content, digest_size=ID_DIGITS // 2).hexdigest())
    return answer


def dumped(value: Any, *, as_json: bool) -> Any:
    """Return frozen dataclasses, dicts and sequences as nested dicts and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: dumped(getattr(value, f.name), as_json=as_json) for f in fields(value)}
    if isinstance(value, dict):
        return {key: dumped(item, as_json=as_json) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return [dumped(item, as_json=as_json) for item in items]
    if as_json and isinstance(value, float) and not isfinite(value):
        return None
    return value

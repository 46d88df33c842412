"""Reports of programs on a transfer: its start, its progress and its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any, TypeAlias

from planner.fields.kinds import (
    AnswerDocument,
    ByPlace,
    Duration,
    Name,
    OneOf,
    Quantity,
    Region,
    Volume,
)
from planner.fields.shared import check_ends_differ
from planner.fields.specified import (
    Figure,
    FiguresByPlace,
    Limit,
    Reads,
    Specified,
    Switch,
    field,
    specified,
)
from planner.model.errors import InputError
from relayd.transfers.expected import DIRECT, SAME_VOLUME, expected_of, is_storable, task_of

GROUP = "transfer"
SILENT_AFTER_S = 120.0
_MOST_S = 3.2e9


Moment: TypeAlias = Annotated[Limit, Quantity(0.0, 1e11)]
Via: TypeAlias = Annotated[
    FiguresByPlace,
    ByPlace(Volume(0.0), "relay"),
    f"What of it came over each path, by its relay or `{DIRECT}`; where that is known.",
]
LimitedBy: TypeAlias = Annotated[
    str,
    OneOf(
        {
            "network": "the path or a VM's cap: a sample of the path",
            "application": "the program that reads, computes or writes: a lower bound",
            "disk": "a disk or a store at either end: a lower bound",
            "unknown": "as reported before; else its program's other transfers tell",
        }
    ),
    "What limited its rate.",
]
_AS_PLANNED = "the plan's unless given."
_UNLESS_GIVEN = "in seconds since 1970 (UTC); now unless given."
_time_field = partial(field, default=None, option=None, group=GROUP)
_limit_field = partial(field, default="unknown", group=GROUP)
_via_field = partial(field, default={}, example=f"{DIRECT}=80GB", option="--via", group=GROUP)


@specified
class TransferStartRequest(Specified):
    """A transfer that begins."""

    src: Annotated[str, Region(), f"Source; {_AS_PLANNED}"] = field(
        factory=str, example="us-east", group=GROUP
    )
    dst: Annotated[str, Region(), f"Destination; {_AS_PLANNED}"] = field(
        factory=str, example="sa", group=GROUP
    )
    _: KW_ONLY
    volume_gb: Annotated[Figure, Volume(), f"Volume in GB; {_AS_PLANNED}"] = field(
        factory=float, example="500GB", group=GROUP
    )
    id: Annotated[
        str | None,
        Name(),
        "Your own name for it, unique among all transfers: beginning it again under the same is no "
        "other transfer. One is made unless given.",
    ] = field(default=None, example="nightly-7", group=GROUP)
    label: Annotated[str | None, Name(), "What it is, for people."] = field(
        default=None, example="nightly copy", group=GROUP
    )
    plan: Annotated[
        Reads[Any, Any | None],
        AnswerDocument("a plan"),
        "The plan that it follows, as it was answered; or figures of it: `paths`, "
        "`throughput_gbps`, `throughput_gbps_low`, `duration_s`, `cost_usd`.",
    ] = field(default=None, example="plan.json", group=GROUP)
    deadline_s: Annotated[Limit, Duration(0.0, _MOST_S), "Latest end, from its beginning."] = field(
        default=None, example="2h", group=GROUP
    )
    silent_after_s: Annotated[
        Figure, Duration(1.0, 86_400.0), "Without a report for so long, it is said to be silent."
    ] = field(default=SILENT_AFTER_S, example="10min", group=GROUP)
    no_hold: Annotated[
        Switch,
        "Do not hold what the plan takes of pools, quotas and interconnects: others are planned as "
        "if it did not run.",
    ] = field(default=False, group=GROUP)
    at_s: Annotated[Moment, f"When it began, {_UNLESS_GIVEN}"] = _time_field()

    def _check(self) -> None:
        planned = task_of(self.document or {}, self.id)
        for name in ("src", "dst", "volume_gb"):
            if not getattr(self, name) and not planned.get(name):
                remedy = "Name it, or give a plan that has it."
                raise InputError(name, "is missing", remedy=remedy)
            self.__dict__[name] = getattr(self, name) or planned[name]
        check_ends_differ(self.src, self.dst)
        _check_texts(self)
        expected = expected_of(self.document)
        whole_gb = expected.volume_gb if expected else None
        if whole_gb is not None and abs(whole_gb - self.volume_gb) > SAME_VOLUME * whole_gb:
            raise InputError(
                "plan",
                f"moves {whole_gb:g} GB, and the transfer {self.volume_gb:g} GB",
                remedy="Give the plan of this transfer, or only its figures.",
            )

    @property
    def document(self) -> Mapping[str, Any] | None:
        """The plan as JSON has it."""
        found: Mapping[str, Any] | None = (
            self.plan
            if self.plan is None or isinstance(self.plan, Mapping)
            else self.plan.model_dump("json")
        )
        return found

    @property
    def digest(self) -> str:
        """A digest of all that it says."""
        said = json.dumps(self.to_json(), sort_keys=True, default=str)
        return blake2b(said.encode(), digest_size=16).hexdigest()


@specified
class TransferProgressRequest(Specified):
    """How far a transfer is."""

    moved_gb: Annotated[Figure, Volume(0.0), "What has arrived since it began, in GB."] = field(
        example="120GB", option="--moved", group=GROUP
    )
    _: KW_ONLY
    via_gb: Via = _via_field()
    limited_by: LimitedBy = _limit_field()
    at_s: Annotated[Moment, f"When that was so, {_UNLESS_GIVEN}"] = _time_field()


@specified
class TransferEndRequest(Specified):
    """How a transfer ended."""

    state: Annotated[
        str,
        OneOf(
            {
                "finished": "all has arrived",
                "failed": "it gave up",
                "cancelled": "it is not wanted any more",
            }
        ),
        "How it ended.",
    ] = field(default="finished", group=GROUP)
    _: KW_ONLY
    moved_gb: Annotated[
        Limit, Volume(0.0), "What has arrived, in GB: of one that finished, all of it unless given."
    ] = field(default=None, example="120GB", option="--moved", group=GROUP)
    via_gb: Via = _via_field()
    limited_by: LimitedBy = _limit_field()
    problem: Annotated[str | None, Name(), "Why it failed or was cancelled."] = field(
        default=None, example="disk full", group=GROUP
    )
    at_s: Annotated[Moment, f"When it ended, {_UNLESS_GIVEN}"] = _time_field()

    def _check(self) -> None:
        _check_texts(self)


def _check_texts(request: Specified) -> None:
    for name in ("id", "label", "problem"):
        if not is_storable(getattr(request, name, None) or ""):
            raise InputError(
                name, "must not hold the character U+0000 or half a pair of surrogates"
            )

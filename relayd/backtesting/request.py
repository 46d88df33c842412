"""Request for a replay: the history to replay, and the transfer that each pair makes."""

from __future__ import annotations

import time
from dataclasses import KW_ONLY
from typing import Annotated, Literal, TypeAlias

from planner.fields.kinds import MOST_FIGURE, Duration, Names, OneOf, Quantity, Volume
from planner.fields.shared import (
    Connections,
    HourValue,
    Margin,
    RiskAttitude,
    VmStart,
    connections_field,
    margin_field,
    risk_field,
    time_value_field,
    vm_start_field,
    volume_field,
)
from planner.fields.specified import Figure, Limit, Several, Specified, field, specified
from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from planner.transfer.request import TransferRequest
from relayd.times import seconds_of, utc_text

DEFAULT_STEP_S = 86_400.0
OF_TRANSFERS = ["connections", "volume_gb", "objective", "time_value_usd_per_h", "margin", "risk"]
"""Fields of every transfer asked for, told with the answer."""

BacktestObjective: TypeAlias = Literal["value", "time", "cost"]


class Moment(Quantity):
    """A time in seconds since 1970; as text ISO 8601 (UTC without a zone), or how long ago."""

    name, unit, metavar = "moment", "s", "TIME"

    def __init__(self) -> None:
        super().__init__(-MOST_FIGURE)

    @staticmethod
    def parse(text: str, field: str) -> float:
        """Read a time such as ``2026-09-01T08:00`` or ``30d``."""
        try:
            return seconds_of(text)
        except ValueError:
            return time.time() - parse_duration_s(text, field)


@specified
class BacktestRequest(Specified):
    """A replay of stored history."""

    _: KW_ONLY
    volume_gb: Annotated[Figure, Volume(), "Volume to move, in decimal GB."] = volume_field(
        example="500GB", group="transfer"
    )
    connections: Connections = connections_field()
    objective: Annotated[
        BacktestObjective,
        OneOf({"value": "least cost plus time", "time": "least time", "cost": "least cost"}),
        "What every transfer aims at.",
    ] = field(default="value", group="goal", label="Objective")
    time_value_usd_per_h: HourValue = time_value_field()
    margin: Margin = margin_field()
    risk: RiskAttitude = risk_field()
    vm_start_s: VmStart = vm_start_field()
    since_s: Annotated[
        Limit,
        Moment(),
        "Replay only from then on; what was measured before is known. ISO 8601, or how long ago.",
    ] = field(default=None, example="30d", group="history")
    until_s: Annotated[Limit, Moment(), "Replay only until then."] = field(
        default=None, group="history"
    )
    step_s: Annotated[
        Figure,
        Duration(1.0),
        "How often everything is decided; what was measured within a step is its truth.",
    ] = field(default=DEFAULT_STEP_S, example="30min", group="history")
    pairs: Annotated[
        Several,
        Names("pairs", "SRC>DST"),
        "Only these; each end a region, an alias, a provider or another rule (country:DE).",
    ] = field(default=(), example="'azure>aws'", group="history")

    def _check(self) -> None:
        if self.since_s is not None and self.until_s is not None and self.since_s >= self.until_s:
            raise InputError("until_s", "is not after since", value=utc_text(self.until_s))

    def transfer(self) -> TransferRequest:
        """Return one transfer, with one VM a region."""
        asked = {name: getattr(self, name) for name in (*OF_TRANSFERS, "vm_start_s")}
        return TransferRequest("from", "to", vms=1, **asked)

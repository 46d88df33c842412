"""The figures that a plan predicts for its transfer, to compare progress with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from planner.fields.shared import MOST_VMS
from planner.model.achieved import RATE_OVER_S, SLOW_SHARE, after_achieving
from planner.model.answer import Bounded
from planner.model.errors import InputError

SAME_VOLUME = 0.01
"""By which the volumes of a transfer and of its plan, and what has moved, may differ."""
DIRECT = "direct"
"""In place of a relay: none."""

_REMEDY = "Give a plan of a transfer as it was answered, or figures of it under the same keys."
_RATES = "throughput_gbps", "throughput_gbps_low", "throughput_gbps_high"
_OF_A_PLAN = frozenset({"plan_id", "snapshot", "request", "vms", "paths"})


@dataclass(frozen=True, slots=True)
class ExpectedPath:
    """A path that a transfer is to take.

    Attributes
    ----------
    regions : tuple of str
        Two, or three with a relay.
    throughput_gbps : float | None
    """

    regions: tuple[str, ...]
    throughput_gbps: float | None

    @property
    def via(self) -> str:
        """The relay, or ``direct``."""
        return self.regions[1] if len(self.regions) > 2 else DIRECT


@dataclass(frozen=True, slots=True)
class ExpectedTransfer:
    """The figures that a plan predicts; None for those that it leaves out.

    Attributes
    ----------
    throughput_gbps, throughput_gbps_low, throughput_gbps_high : float | None
    duration_s : float | None
        From when it sends, VMs started.
    cost_usd : float | None
        Egress and VMs.
    paths : tuple of ExpectedPath
    plan_id : str | None
    volume_gb : float | None
        That the plan was asked for.
    vms, most_vms : int | None
        At the end that has fewer, and at the one that has more.
    """

    throughput_gbps: float | None = None
    throughput_gbps_low: float | None = None
    throughput_gbps_high: float | None = None
    duration_s: float | None = None
    cost_usd: float | None = None
    paths: tuple[ExpectedPath, ...] = ()
    plan_id: str | None = None
    volume_gb: float | None = None
    vms: int | None = None
    most_vms: int | None = None

    @property
    def least_gbps(self) -> float | None:
        """The rate below which a transfer is much slower than planned."""
        planned, low = self.throughput_gbps, self.throughput_gbps_low
        return planned and (SLOW_SHARE * planned if low is None else low)

    def is_of(self, volume_gb: float, vias: Iterable[str]) -> bool:
        """Return whether it is of a volume, and has all these paths."""
        planned_gb = self.volume_gb or 0.0
        is_whole = abs(volume_gb - planned_gb) <= SAME_VOLUME * planned_gb
        return is_whole and {path.via for path in self.paths}.issuperset(vias)

    def rest_gbps(self, rate_gbps: float) -> float:
        """Return the rate of the rest, from that of the moment and that of the plan."""
        planned, low = self.throughput_gbps, self.least_gbps
        if planned is None or low is None:
            return rate_gbps
        by_plan = Bounded(planned, low, self.throughput_gbps_high or planned**2 / low)
        return after_achieving(by_plan, rate_gbps, RATE_OVER_S).expected


_Known = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Cost(BaseModel):
    egress: _Known
    vm: _Known
    total: _Known


class _Option(BaseModel):
    duration_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    cost_usd: _Cost
    vm_start_s: _Known = 0.0

    def vm_usd(self, sending_s: float) -> float:
        """Return the price of its VMs, with the time until they have started."""
        return self.cost_usd.vm * (self.vm_start_s + sending_s) / self.duration_s


class PlanFigures(_Option):
    """Time and cost of a plan and of the direct path."""

    verdict: str
    direct: _Option | None = None


def figures_of(plan: Mapping[str, Any] | str | None) -> PlanFigures | None:
    """Return the figures of a plan; None where they are not all there: a program reported it."""
    read = PlanFigures.model_validate_json if isinstance(plan, str) else PlanFigures.model_validate
    try:
        return read(plan)  # type: ignore[arg-type]
    except ValidationError:
        return None


def is_whole_plan(plan: Mapping[str, Any] | None) -> bool:
    """Return whether it is a complete plan, which can be re-planned, not only some figures."""
    return plan is not None and plan.keys() >= _OF_A_PLAN


def is_storable(text: str) -> bool:
    """Return whether stores can keep a text: PostgreSQL no U+0000, none a lone surrogate."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def task_of(plan: Mapping[str, Any], transfer: str | None = None) -> dict[str, Any]:
    """Return `src`, `dst` and `volume_gb` of what a plan moves, as far as it says them.

    Of a shuffle these are the ends of the largest pair, of a broadcast the first destination, and
    of a schedule those of the transfer of that id.
    """
    try:
        found = dict(plan.get("request") or {})
        if trees_to := found.get("destinations"):
            found["dst"] = trees_to[0]
        elif pairs := plan.get("pairs"):
            found = {**max(pairs, key=lambda pair: pair["volume_gb"]), **found}
        found |= next((one for one in plan.get("transfers") or () if one["id"] == transfer), {})
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}  # what needs them says what is missing
    kinds = {"src": str, "dst": str, "volume_gb": int | float}
    return {name: found[name] for name, kind in kinds.items() if isinstance(found.get(name), kind)}


def expected_of(plan: Mapping[str, Any] | None) -> ExpectedTransfer | None:
    """Return the figures of a plan; raises InputError if they are no figures of a transfer."""
    if plan is None:
        return None
    cost, asked, vms, number = map(plan.get, ("cost_usd", "request", "vms", "plan_id"))
    stated = {name: plan.get(name) for name in (*_RATES, "duration_s")}
    stated["cost_usd"] = cost.get("total") if isinstance(cost, Mapping) else cost
    stated["volume_gb"] = asked.get("volume_gb") if isinstance(asked, Mapping) else None
    paths = plan.get("paths") or ()
    if not isinstance(paths, list | tuple) or len(paths) > 1000:
        raise InputError("plan.paths", "must be a list of paths", value=paths, remedy=_REMEDY)
    figures = {name: _figure(value, name) for name, value in stated.items()}
    if figures["duration_s"] is not None:  # a transfer begins once its VMs run
        start_s = _figure(plan.get("vm_start_s"), "vm_start_s") or 0.0
        figures["duration_s"] = max(0.0, figures["duration_s"] - start_s)
    taken, counts = tuple(map(_path, paths)), list[Any]()
    if taken and isinstance(vms, Mapping):
        counts = [vms.get(taken[0].regions[end]) for end in (0, -1)]
        if not all(isinstance(count, int) and 1 <= count <= MOST_VMS for count in counts):
            counts = []
    return ExpectedTransfer(
        **figures,
        paths=taken,
        plan_id=number and str(number)[:200],
        vms=min(counts, default=None),
        most_vms=max(counts, default=None),
    )


def _figure(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"plan.{name}", "must be a number", value=value, remedy=_REMEDY)
    # A duration may be 0 in a store's figures; a rate of 0 says nothing.
    if value < 0 or (value == 0 and name.startswith("throughput")):
        raise InputError(f"plan.{name}", "must be above 0", value=value, remedy=_REMEDY)
    return float(value)


def _path(value: Any) -> ExpectedPath:
    regions = value.get("regions") if isinstance(value, Mapping) else None
    if (
        not isinstance(regions, list | tuple)
        or not 2 <= len(regions) <= 3
        or not all(isinstance(name, str) and 0 < len(name) <= 200 for name in regions)
        or not is_storable("".join(regions))
    ):
        raise InputError(
            "plan.paths", "must be paths of two or three regions", value=value, remedy=_REMEDY
        )
    return ExpectedPath(
        tuple(regions), _figure(value.get("throughput_gbps"), "paths.throughput_gbps")
    )

"""Capacity that transfers under way hold: of pools of VMs, of vCPU quotas and of interconnects.

The connections of one VM share its caps, whatever their destination, and separate VMs share nothing
(docs/papers.md): so transfers on VMs of a pool contend for what these send and receive, and those
that start VMs of their own for the quota of the account. A hold counts while its transfer runs and
is reported. Questions are answered on what is left: :func:`what_is_left`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, Literal, TypeAlias, TypeVar

from planner.model.answer import HeldCapacity
from planner.model.catalogue import Catalogue
from planner.model.errors import InfeasibleError, InputError
from planner.model.estimate import ADDRESS_KINDS, AddressKind
from planner.model.link import Site
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.quotas.vcpus import VmQuota
from planner.model.units import gbps_text
from relayd.store.database import Database
from relayd.times import seconds_of, utc_text

T = TypeVar("T")
HoldKind: TypeAlias = Literal["pool", "vms", "interconnect"]
Place: TypeAlias = tuple[HoldKind, str]
"""A kind of hold, and the region or the name of the interconnect."""

ROUNDING = 1e-6
"""By which sums of rates may exceed a capacity."""
LEAST_LEFT = 0.01
"""Of a pool or an interconnect: with less, nothing is planned on it."""
_KEPT = "kind", "place", "vm_type", "vms", "egress_gbps", "ingress_gbps", "plan_id", "ends_at_s"
_LIVE = (
    "FROM holds JOIN transfers ON number = transfer_number "
    "WHERE state = 'running' AND is_lost = 0 AND heard_s + silent_after_s >= ?"
)


@dataclass(frozen=True, slots=True)
class Hold:
    """Capacity of one place that a transfer holds.

    Attributes
    ----------
    place : str
        The region of VMs, or the name of an interconnect.
    vm_type : str
        Of VMs that were started for it; ``""`` where it is not known.
    vms : int
        Number of these.
    egress_gbps, ingress_gbps : float
        Of a pool; in shares of its higher cap where kinds of addresses have caps of their own. Of
        an interconnect, the first.
    plan_id : str
    ends_at_s : float | None
        As forecast last, seconds since 1970 (UTC).
    transfer, who : str
        Id of the transfer, and its reporter.
    began_s, until_s : float
        It counts no longer than this, unless another report comes.
    """

    kind: HoldKind
    place: str
    vm_type: str = ""
    vms: int = 0
    egress_gbps: float = 0.0
    ingress_gbps: float = 0.0
    plan_id: str = ""
    ends_at_s: float | None = None
    transfer: str = ""
    who: str = ""
    began_s: float = 0.0
    until_s: float = field(default_factory=lambda: inf)  # no default in JSON, which lacks it

    @property
    def at(self) -> Place:
        """Where it is."""
        return self.kind, self.place

    def row(self, transfer_number: int) -> dict[str, object]:
        """Return the row of a transfer that it becomes."""
        kept = {name: getattr(self, name) for name in _KEPT}
        return {"transfer_number": transfer_number, **kept, "is_lost": 0}


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The held part of one pool, quota or interconnect, and the transfers that hold it."""

    held: HeldCapacity
    by: tuple[Hold, ...]


@dataclass(frozen=True)
class Holds:
    """The holds that count at a time.

    Attributes
    ----------
    version : tuple of int
        Two of the same version are equal.
    """

    all: tuple[Hold, ...] = ()
    version: tuple[int, ...] = ()

    def live(self, now_s: float) -> Holds:
        """Return those whose transfers are still reported; the same object if all are."""
        if now_s <= self._first_until_s:
            return self
        kept = tuple(one for one in self.all if one.until_s >= now_s)
        return Holds(kept, (*self.version[:1], len(kept)))

    def without(self, plan_id: str | None) -> Holds:
        """Return those of all transfers but one, which follows a plan."""
        own = next((one.transfer for one in self.all if plan_id and one.plan_id == plan_id), None)
        if own is None:
            return self
        kept = tuple(one for one in self.all if one.transfer != own)
        return Holds(kept, (*self.version, len(kept), hash(plan_id)))

    def after(self, at_s: float) -> Holds:
        """Return those of transfers that go on after a time, by their forecast."""
        kept = tuple(one for one in self.all if one.ends_at_s is None or one.ends_at_s > at_s)
        return Holds(kept, (*self.version, len(kept), hash(at_s)))

    def ends(self, *, since_s: float = 0.0) -> list[float]:
        """Return the forecast ends after a time, in their order."""
        return sorted({end_s for one in self.all if (end_s := one.ends_at_s or 0.0) > since_s})

    @cached_property
    def by_place(self) -> Mapping[Place, list[Hold]]:
        """The holds of each place."""
        found = defaultdict[Place, list[Hold]](list)
        for one in self.all:
            found[one.at].append(one)
        return found

    @cached_property
    def _first_until_s(self) -> float:
        return min((one.until_s for one in self.all), default=inf)

    def gbps(self, kind: HoldKind, place: str) -> tuple[float, float]:
        """Return the rates held of a pool or an interconnect, sent and received."""
        held = self.by_place.get((kind, place), ())
        return sum(one.egress_gbps for one in held), sum(one.ingress_gbps for one in held)


NONE_HELD = Holds()


def holds_of(database: Database, now_s: float) -> Holds:
    """Return the holds of a store that count at a time; none in one of an older version."""
    if database.version < 2 and database.schema_version() < 2:
        return NONE_HELD
    version = database.last_id("events")
    more = "transfers.id AS transfer, who, began_s, heard_s + silent_after_s AS until_s"
    rows = database.rows(f"SELECT {', '.join(_KEPT)}, {more} {_LIVE}", (now_s,))
    return Holds(tuple(Hold(*row) for row in rows), (version, len(rows)))


# ---- what a plan takes ---------------------------------------------------------------------------


def needs_of(
    plan: Mapping[str, Any], transfer: str, network: Network, catalogue: Catalogue
) -> list[Hold]:
    """Return the capacity of pools, quotas and interconnects that a plan takes.

    Parameters
    ----------
    plan : mapping
        The answer to any question that has paths, pairs, trees or a schedule, as JSON has it.
    transfer : str
        Id in the schedule.
    network : Network
        As it is without any holds.

    Raises
    ------
    InputError
        If it is no such plan.
    """
    found: list[Hold] = []
    rates = defaultdict[Place, list[float]](lambda: [0.0, 0.0])  # sent and received
    try:
        plan_id = str(plan.get("plan_id", ""))
        for region, count in (plan.get("vms") or {}).items():
            if region in network.sites and not network.sites[region].vms:
                vm_type = str((plan.get("vm_types") or {}).get(region, ""))
                vms = int(_figure(count))
                found.append(Hold("vms", region, vm_type, vms, plan_id=plan_id))
        for src, dst, gbps in _flows(plan, transfer):
            for at, end, rate in _of_flow(network, catalogue, src, dst, _figure(gbps)):
                rates[at][end] += rate
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"does not say what it takes ({type(error).__name__}: {error})"
        remedy = "Give a plan as it was answered, or begin it with `--no-hold`."
        raise InputError("plan", problem, remedy=remedy) from None
    found += [Hold(*at, "", 0, out, into, plan_id) for at, (out, into) in rates.items()]
    return found


def _figure(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise ValueError(f"{value!r} is no rate or number of VMs")
    return float(value)


def regions_of(plan: Mapping[str, Any], transfer: str) -> set[str]:
    """Return the regions that a plan takes capacity in, as far as it says."""
    try:
        ends = {end for flow in _flows(plan, transfer) for end in flow[:2]}
        return {name for name in ends | {*(plan.get("vms") or ())} if isinstance(name, str)}
    except (AttributeError, KeyError, TypeError, ValueError):
        return set()  # needs_of says what is wrong


def is_of_many(plan: Mapping[str, Any] | None) -> bool:
    """Return whether a plan is of a shuffle or a broadcast: its ends are no pair."""
    return plan is not None and not plan.keys().isdisjoint(("pairs", "trees"))


def _flows(plan: Mapping[str, Any], transfer: str) -> Iterator[tuple[str, str, float]]:
    """Yield source, destination and Gbit/s of all that is sent at a time."""
    paths = [*(plan.get("paths") or ())]
    paths += (path for pair in plan.get("pairs") or () for path in pair["paths"])
    for path in paths:
        for src, dst in pairwise(path["regions"]):
            yield src, dst, path["throughput_gbps"]
    for tree in plan.get("trees") or ():
        for link in tree["legs"]:
            yield link["src"], link["dst"], link["throughput_gbps"]
    most = defaultdict[tuple[str, str], float](float)
    for timed in plan.get("transfers") or ():
        for period in timed["periods"] if timed["id"] == transfer else ():
            at_once = defaultdict[tuple[str, str], float](float)
            for path in period["paths"]:
                for hop in pairwise(path["regions"]):
                    at_once[hop] += path["throughput_gbps"]
            most |= {hop: max(most[hop], gbps) for hop, gbps in at_once.items()}
    for (src, dst), gbps in most.items():
        yield src, dst, gbps


def _of_flow(
    network: Network, catalogue: Catalogue, src: str, dst: str, gbps: float
) -> Iterator[tuple[Place, int, float]]:
    """Yield each place that a flow takes a rate of, as sent (0) or received (1)."""
    link = network.usual.link(src, dst)
    kind: AddressKind = link.address if link else "public"
    for end, region in enumerate((src, dst)):
        site = network.sites[region]
        if site.vms:
            own = (site.ingress(kind) if end else site.egress(kind)).expected
            weighed = gbps if own == inf else gbps * _cap_gbps(site, sends=not end) / own
            yield ("pool", region), end, weighed
    price = catalogue.egress_price(src, dst) if catalogue.has_interconnects else None
    if price and price.gbps and kind == "private":
        yield ("interconnect", price.name), 0, gbps


def _cap_gbps(site: Site, *, sends: bool) -> float:
    """Return the cap of one VM for all that it sends, or receives."""
    cap = site.egress if sends else site.ingress
    return max(cap(kind).expected for kind in ADDRESS_KINDS)


# ---- what is left --------------------------------------------------------------------------------


def check_room(needs: Iterable[Hold], holds: Holds, network: Network, catalogue: Catalogue) -> None:
    """Refuse a plan that does not fit with the holds of others.

    Raises
    ------
    InfeasibleError
        With the time from which it fits, by the forecasts of others.
    InputError
        If it never does.
    """
    wanted = list(needs)
    if not (short := _shortage(wanted, holds, network, catalogue)):
        return
    if never := _shortage(wanted, NONE_HELD, network, catalogue):
        remedy = "Plan again, on the capacity of now, or begin it with `--no-hold`."
        raise InputError("plan", f"takes more than there is: {never}", remedy=remedy)
    starts_at_s = _first_time(holds, lambda left: not _shortage(wanted, left, network, catalogue))
    remedy = "Plan again, on what is left."
    fault = InfeasibleError(f"the plan takes more than others leave: {short}", remedy)
    raise with_room(fault, starts_at_s)


def with_room(fault: InfeasibleError, starts_at_s: float | None) -> InfeasibleError:
    """Return the error that there is no plan on what others leave, and when there is one."""
    remedy = f"{fault.remedy} Without the transfers under way there is a plan"
    if starts_at_s is not None:
        remedy += (
            f": by their forecasts from {utc_text(starts_at_s)} on (`--queue` plans from then)"
        )
    return InfeasibleError(fault.limit, f"{remedy}.", starts_at_s, **fault.change)


def _first_time(holds: Holds, fits: Callable[[Holds], bool]) -> float | None:
    """Return the first forecast end after which something fits; None where none is known."""
    ends = holds.ends()
    at = bisect_left(ends, True, key=lambda end_s: fits(holds.after(end_s)))
    return ends[at] if at < len(ends) else None


def _shortage(
    needs: Iterable[Hold], holds: Holds, network: Network, catalogue: Catalogue
) -> str | None:
    """Return the first need that does not fit, in words; None if all fit."""
    for need in needs:
        if need.kind == "vms":
            for quota in network.sites[need.place].quotas:
                if need.vms > (left := with_held(quota, holds, need.place, catalogue)).vms:
                    return f"{need.vms} VMs at {need.place}, where {left} and {left.vms} may run"
            continue
        for word, rate, held, limit in _rates(need, holds, network, catalogue):
            if rate + held > limit * (1 + ROUNDING):
                where = f"the {'pool at ' if need.kind == 'pool' else ''}{need.place}"
                room = f"{gbps_text(max(0.0, limit - held))} of {gbps_text(limit)}"
                return f"{gbps_text(rate)} Gbit/s {word} by {where}, which has {room} left"
    return None


def _rates(
    need: Hold, holds: Holds, network: Network, catalogue: Catalogue
) -> Iterator[tuple[str, float, float, float]]:
    """Yield the rate that is needed in each direction, what others hold, and the capacity."""
    limits = _capacity_gbps(*need.at, network, catalogue) or (inf, inf)
    rates, held = (need.egress_gbps, need.ingress_gbps), holds.gbps(need.kind, need.place)
    rows = zip(("sent", "received"), rates, held, limits, strict=True)
    yield from (row for row in rows if row[1] > 0)


def share_left(
    needs: Iterable[Hold], holds: Holds, network: Network, catalogue: Catalogue
) -> float:
    """Return the part of a plan's needs that others leave, from a thousandth to 1.

    It is never 0, which programs take for no limit.
    """
    shares = (
        (limit - held) / rate
        for need in needs
        for _, rate, held, limit in _rates(need, holds, network, catalogue)
    )
    return min(1.0, max(LEAST_LEFT / 10, min(shares, default=1.0)))


def pool_left_gbps(network: Network, holds: Holds, region: str) -> float:
    """Return the rate that the holds of a pool leave, at least a thousandth of its own.

    Raises InputError if no pool is known there.
    """
    site = network.sites.get(region)
    if site is None or not site.vms:
        remedy = "State it as a `[[pool]]` of a catalogue file, or in the fleet file."
        raise InputError("region", "has no pool of VMs", value=region, remedy=remedy)
    limits = zip(_pool_gbps(site), holds.gbps("pool", region), strict=True)
    return min(max(limit * LEAST_LEFT / 10, limit - held) for limit, held in limits)


def _capacity_gbps(
    kind: HoldKind, place: str, network: Network, catalogue: Catalogue
) -> tuple[float, float] | None:
    """Return the capacity of a pool or an interconnect, sent and received; None of VMs."""
    if kind == "pool":
        return _pool_gbps(network.sites[place])
    lines = (fee.gbps or inf for fee in catalogue.fees if fee.name == place)
    return (next(lines, inf), inf) if kind == "interconnect" else None


def _pool_gbps(site: Site) -> tuple[float, float]:
    """Return the caps of all VMs of a pool together, sent and received."""
    vms = site.vms or 0
    return vms * _cap_gbps(site, sends=True), vms * _cap_gbps(site, sends=False)


def with_held(quota: VmQuota, holds: Holds, region: str, catalogue: Catalogue) -> VmQuota:
    """Return a quota with what transfers have started since its date in use."""
    of = quota.quota
    since_s = 0.0
    if of.used_vcpus and of.as_of:  # what runs since before that is in the figure
        since_s = seconds_of(of.as_of if len(of.as_of) > len("2026-11") else f"{of.as_of}-01")
    used = sum(
        one.vms * catalogue.vm_types[one.vm_type].vcpus
        for one in holds.by_place.get(("vms", region), ())
        if one.vm_type in catalogue.vm_types and of.counts(one.vm_type) and one.began_s >= since_s
    )
    if not used:
        return quota
    return quota._replace(quota=of._replace(used_vcpus=of.used_vcpus + used))


def _network_left(network: Network, holds: Holds, catalogue: Catalogue) -> Network:
    """Return the network on what others leave; the same object if they hold nothing of it.

    All VMs of a pool stay, each with its part of what is left of the pool's caps.
    """
    left: Network
    version, left = network.kept.get("left", (None, network))
    if version != holds.version:
        sites = {}
        for kind, place in holds.by_place:
            site = network.sites.get(place)
            if site and kind == "pool" and site.vms:
                sites[place] = _with_less(site, *holds.gbps("pool", place))
            elif site and kind == "vms" and site.quotas:
                quotas = (with_held(quota, holds, place, catalogue) for quota in site.quotas)
                sites[place] = replace(site, quotas=tuple(quotas))
        left = network.with_(sites={**network.sites, **sites}) if sites else network
        network.kept["left"] = holds.version, left
    return left


def _with_less(site: Site, out_gbps: float, into_gbps: float) -> Site:
    sends, receives = (
        max(LEAST_LEFT / 10, 1 - held / of)
        for held, of in zip((out_gbps, into_gbps), _pool_gbps(site), strict=True)
    )
    return replace(
        site,
        egress_gbps=site.egress_gbps.scaled(sends),
        ingress_gbps=site.ingress_gbps.scaled(receives),
        private_egress_gbps=site.private_egress_gbps and site.private_egress_gbps.scaled(sends),
        private_ingress_gbps=site.private_ingress_gbps
        and site.private_ingress_gbps.scaled(receives),
    )


def _catalogue_left(catalogue: Catalogue, holds: Holds) -> Catalogue:
    """Return the catalogue with what others leave of its interconnects; the same if all of it."""
    places = [place for kind, place in holds.by_place if kind == "interconnect"]
    if not places:
        return catalogue
    held = {place: holds.gbps("interconnect", place)[0] for place in places}
    fees = tuple(
        replace(fee, gbps=max(LEAST_LEFT / 10 * fee.gbps, fee.gbps - held[fee.name]))
        if fee.gbps and held.get(fee.name)
        else fee
        for fee in catalogue.fees
    )
    return replace(catalogue, fees=fees)


def what_is_left(
    network: Network, prices: CataloguePrices, holds: Holds, catalogue: Catalogue
) -> tuple[Network, CataloguePrices]:
    """Return the network and the prices of a question on what others leave."""
    left = _network_left(network, holds, catalogue)
    return left, prices.on(left, _catalogue_left(prices.catalogue, holds))


def refuse_full(network: Network, holds: Holds, pairs: Collection[tuple[str, str]]) -> None:
    """Refuse ends whose pool has nothing left.

    Raises
    ------
    InfeasibleError
    """
    for ends in pairs:
        for at, region in enumerate(ends):
            site = network.sites.get(region)
            if site and site.vms and ("pool", region) in holds.by_place:
                limit, held = _pool_gbps(site)[at], holds.gbps("pool", region)[at]
                if limit - held < LEAST_LEFT * limit:
                    what = "sends" if at == 0 else "receives"
                    problem = f"others hold all {gbps_text(limit)} Gbit/s that the pool at {region}"
                    raise InfeasibleError(f"{problem} {what}", "Plan it for later.")


def when_free(holds: Holds, solve: Callable[[Holds], T]) -> tuple[T, float | None]:
    """Return the answer once enough transfers have ended by their forecasts, and when that is.

    The time is None where the end of one that is in the way is not known.

    Raises
    ------
    InfeasibleError
        What `solve` raises if there is no answer when all have ended.
    """
    without = solve(NONE_HELD)

    def fits(left: Holds) -> bool:
        try:
            solve(left)
        except InfeasibleError:
            return False
        return True

    at_s = _first_time(holds, fits)
    return (without, None) if at_s is None else (solve(holds.after(at_s)), at_s)


def held_at(
    network: Network, holds: Holds, regions: Collection[str], catalogue: Catalogue
) -> tuple[HeldCapacity, ...]:
    """Return the held capacity of some regions and of all interconnects, and the rest of it."""
    return tuple(
        _held(network, holds, kind, place, catalogue)
        for kind, place in sorted(holds.by_place)
        if kind == "interconnect" or place in regions
    )


def pools_of(network: Network, holds: Holds, catalogue: Catalogue) -> list[PoolUse]:
    """Return the use of every pool, and of quotas and interconnects of which a part is held."""
    pools: set[Place] = {("pool", name) for name, site in network.sites.items() if site.vms}
    return [
        PoolUse(_held(network, holds, *at, catalogue), tuple(holds.by_place.get(at, ())))
        for at in sorted(pools | holds.by_place.keys())
    ]


def _held(
    network: Network, holds: Holds, kind: HoldKind, place: str, catalogue: Catalogue
) -> HeldCapacity:
    held = holds.by_place.get((kind, place), ())
    sent, received = holds.gbps(kind, place)
    limits, vms_left = _capacity_gbps(kind, place, network, catalogue), None
    if limits is None and (quotas := network.sites[place].quotas):
        vms_left = min(with_held(one, holds, place, catalogue).vms for one in quotas)
    ends = [one.ends_at_s for one in held if one.ends_at_s is not None]
    return HeldCapacity(
        kind=kind,
        place=place,
        transfers=len({one.transfer for one in held}),
        vms=sum(one.vms for one in held),
        vms_left=vms_left,
        egress_gbps=sent,
        ingress_gbps=received,
        egress_gbps_left=max(0.0, limits[0] - sent) if limits else None,
        ingress_gbps_left=max(0.0, limits[1] - received) if limits else None,
        frees_at_s=min(ends, default=None),
    )

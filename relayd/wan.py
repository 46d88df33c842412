"""The library's face: one object that plans, and shows what it knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from planner.aliases import Resolution, permitted, resolve, resolve_many
from planner.baseline import with_vm_types
from planner.catalogue import Catalogue, Region
from planner.errors import DataError, InputError
from planner.network import Leg, Network, Site, Snapshot
from planner.plan import Plan
from planner.pricing import CataloguePrices
from planner.recommendation import recommend
from planner.request import (
    DEFAULT_CONNECTIONS,
    DEFAULT_MARGIN,
    DEFAULT_TIME_VALUE_USD_PER_H,
    DEFAULT_VM_START_S,
    DEFAULT_VOLUME_GB,
    Objective,
    TransferRequest,
)
from relayd.knowledge import Knowledge

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planner.shuffle_plan import ShufflePlan
    from planner.shuffle_request import ShuffleObjective

MatrixMetric: TypeAlias = Literal["per-flow", "aggregate", "rtt", "fee", "relay-gain"]
MATRIX_METRICS: tuple[MatrixMetric, ...] = get_args(MatrixMetric)
_UNITS = {
    "per-flow": "Mbit/s",
    "aggregate": "Gbit/s",
    "rtt": "ms",
    "fee": "USD/GB",
    "relay-gain": "ratio",
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A labelled matrix, row to column.

    Attributes
    ----------
    metric, unit : str
    regions : tuple of str, length n
    values : array, shape (n, n)
        NaN on the diagonal and where nothing is known.
    snapshot : Snapshot
    """

    metric: str
    unit: str
    regions: tuple[str, ...]
    values: NDArray[np.float64]
    snapshot: Snapshot

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """Return the value of one pair of region ids."""
        src, dst = pair
        return float(self.values[self.regions.index(src), self.regions.index(dst)])


class Wan:
    """The wide-area network as far as it is known, and what to do on it.

    Make one with :func:`relayd.open`. It reads the newest snapshot when first asked and keeps
    it; :meth:`refresh` looks for a newer one.
    """

    def __init__(self, catalogue: Catalogue, db: Path | None) -> None:
        self.catalogue = catalogue
        self._knowledge = Knowledge(catalogue, db)
        self._whole: Network | None = None
        self._parts: dict[tuple[str, str], Network] = {}
        self._variants: dict[tuple[object, ...], Network] = {}

    def __repr__(self) -> str:
        """Say what it rests on."""
        return f"<Wan on snapshot {self._knowledge.snapshot.id}>"

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on."""
        return self._knowledge.snapshot

    @property
    def network(self) -> Network:
        """The whole graph of estimates, bounds widened for age."""
        if self._whole is None:
            self._whole = self._knowledge.network().aged(time.time())
        return self._whole

    def refresh(self) -> Snapshot:
        """Forget what was read, so that the next answer rests on the newest snapshot."""
        self._knowledge.forget()
        self._whole = None
        self._parts.clear()
        self._variants.clear()
        return self.snapshot

    # ---- names ---------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        """Return the catalogue's baseline regions and all measured ones."""
        return [self.catalogue.region(name) for name in self._knowledge.regions()]

    def sites(self) -> dict[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return self._knowledge.sites()

    def resolve(
        self, name: str, field: str = "region", prefer_provider: str | None = None
    ) -> Resolution:
        """Return the region that a name or alias stands for, with a note if it was a choice."""
        return resolve(
            name,
            self.catalogue,
            field=field,
            known=self._knowledge.regions(),
            prefer_provider=prefer_provider,
        )

    def resolve_pair(self, src: str, dst: str) -> tuple[str, str, tuple[str, ...]]:
        """Return both ends of a transfer as region ids, with notes on what was chosen.

        An end that fits several providers goes with the other end's, where traffic is cheaper.
        """
        try:
            source = self.resolve(src, "src")
        except InputError:
            # A city of several providers, which the destination may settle.
            try:
                destination = self.resolve(dst, "dst")
            except InputError:
                destination = None
            if destination is None:
                raise
            source = self.resolve(src, "src", destination.region_id.partition(":")[0])
        target = self.resolve(dst, "dst", source.region_id.partition(":")[0])
        notes = tuple(r.note for r in (source, target) if r.note)
        return source.region_id, target.region_id, notes

    # ---- decisions -----------------------------------------------------------------------

    def plan(
        self,
        src: str,
        dst: str,
        *,
        volume_gb: float = DEFAULT_VOLUME_GB,
        objective: Objective = "value",
        time_value_usd_per_h: float = DEFAULT_TIME_VALUE_USD_PER_H,
        margin: float = DEFAULT_MARGIN,
        budget_usd: float | None = None,
        deadline_s: float | None = None,
        min_throughput_gbps: float | None = None,
        vms: int = 1,
        vms_in: Mapping[str, int] = {},
        connections: int = DEFAULT_CONNECTIONS,
        relays: str = "any",
        avoid: Sequence[str] = (),
        allow: Sequence[str] = (),
        month_to_date_gb: Mapping[str, float] = {},
        vm_types: Mapping[str, str] = {},
        vm_start_s: float = DEFAULT_VM_START_S,
        max_age_s: float | None = None,
        frontier: bool = False,
    ) -> Plan:
        """Recommend how to move a volume from one region to another.

        Parameters
        ----------
        src, dst : str
            Region ids, bare region names, aliases or cities.
        volume_gb, objective, time_value_usd_per_h, margin, budget_usd, deadline_s, \
        min_throughput_gbps, vms, vms_in, connections, vm_start_s
            See :class:`planner.request.TransferRequest`.
        relays : str
            ``any``, ``one``, ``none``, or the name of the only relay to consider.
        avoid, allow : sequences of str
            Rules for relays: ``provider:aws``, ``country:DE``, ``continent:EU``, or a region.
            A region whose country is not known is not allowed under such a rule.
        month_to_date_gb : mapping
            Provider (or ``*``) to what it has billed this month, for tiered fees.
        vm_types : mapping
            Region or provider to VM type, in place of what was measured or assumed.
        max_age_s : float, optional
            Refuse to answer from measurements older than this.
        frontier : bool
            Whether to add the cost-time frontier.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.errors`.
        """
        source, target, notes = self.resolve_pair(src, dst)
        if source == target:
            raise InputError(
                "dst",
                f"is the source itself ({source})",
                value=dst,
                remedy="Name two different regions.",
            )
        forbidden = self._forbidden({"src": source, "dst": target}, avoid, allow)
        if relays not in {"any", "one", "none"}:
            relays = self.resolve(relays, "relays").region_id
            if relays in {source, target}:
                raise InputError("relays", "is an end of the transfer", value=relays)
            if relays in forbidden:
                raise InputError("relays", "is forbidden by the rules", value=relays)
        request = TransferRequest(
            source,
            target,
            volume_gb=volume_gb,
            objective=objective,
            time_value_usd_per_h=time_value_usd_per_h,
            margin=margin,
            budget_usd=budget_usd,
            deadline_s=deadline_s,
            min_throughput_gbps=min_throughput_gbps,
            vms=vms,
            vms_in={self.resolve(name, "vms").region_id: n for name, n in vms_in.items()},
            connections=connections,
            relays=relays,
            forbidden=forbidden,
            vm_start_s=vm_start_s,
        )
        network = self._network_for(source, target, vm_types)
        now_s = time.time()
        if max_age_s is not None:
            _refuse_old(network.leg(source, target), now_s, max_age_s)
        return recommend(
            request,
            network,
            CataloguePrices(self.catalogue, network, _checked_billing(month_to_date_gb)),
            catalogue=self.catalogue,
            now_s=now_s,
            with_frontier=frontier,
            notes=notes,
        )

    def shuffle(
        self,
        demands_gb: Any,
        *,
        regions: Sequence[str] | None = None,
        objective: ShuffleObjective = "time",
        deadline_s: float | None = None,
        margin: float = DEFAULT_MARGIN,
        vms: int = 1,
        vms_in: Mapping[str, int] = {},
        connections: int = DEFAULT_CONNECTIONS,
        relays: str = "any",
        avoid: Sequence[str] = (),
        allow: Sequence[str] = (),
        month_to_date_gb: Mapping[str, float] = {},
        vm_types: Mapping[str, str] = {},
        vm_start_s: float = DEFAULT_VM_START_S,
        frontier: bool = False,
    ) -> ShufflePlan:
        """Recommend how to run many transfers at once, over VMs that they share.

        Parameters
        ----------
        demands_gb : mapping, sequence, data frame or array
            GB by source and destination; see :func:`planner.demands.demands_gb`.
        regions : sequence of str, optional
            Names of an array's rows and columns.
        objective, deadline_s, margin, vms, vms_in, connections, relays, vm_start_s
            See :class:`planner.shuffle_request.ShuffleRequest`.
        avoid, allow, month_to_date_gb, vm_types, frontier
            As for :meth:`plan`.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.errors`.
        """
        from planner.demands import demands_gb as read_demands
        from planner.shuffle import recommend_shuffle
        from planner.shuffle_request import ShuffleRequest

        named = read_demands(demands_gb, regions)
        found = {
            name: self.resolve(name, "demands")
            for name in dict.fromkeys(name for pair in named for name in pair)
        }
        # Two names may mean one region; what it sends itself needs no WAN.
        resolved = read_demands(
            [
                (found[src].region_id, found[dst].region_id, volume_gb)
                for (src, dst), volume_gb in named.items()
            ]
        )
        ends = {f"demands ({name})": resolution.region_id for name, resolution in found.items()}
        request = ShuffleRequest(
            resolved,
            objective=objective,
            deadline_s=deadline_s,
            margin=margin,
            vms=vms,
            vms_in={self.resolve(name, "vms").region_id: n for name, n in vms_in.items()},
            connections=connections,
            relays=relays,
            forbidden=self._forbidden(ends, avoid, allow),
            vm_start_s=vm_start_s,
        )
        network = self.network
        if further := [region for region in request.ends if region not in network.sites]:
            network = self._knowledge.network(further=further).aged(time.time())
        network = self._with_vm_types(network, vm_types)
        return recommend_shuffle(
            request,
            network,
            CataloguePrices(self.catalogue, network, _checked_billing(month_to_date_gb)),
            with_frontier=frontier,
            notes=tuple(resolution.note for resolution in found.values() if resolution.note),
        )

    def _network_for(self, src: str, dst: str, vm_types: Mapping[str, str]) -> Network:
        """Return at least the legs that a plan between two regions needs."""
        network = self._whole
        if network is None:
            if (src, dst) not in self._parts and len(self._parts) >= 2:
                network = self.network  # many pairs: reading all once is cheaper
            elif (src, dst) not in self._parts:
                part = self._knowledge.network(between=(src, dst))
                self._parts[src, dst] = part.aged(time.time())
        return self._with_vm_types(network or self._parts[src, dst], vm_types)

    def _with_vm_types(self, network: Network, vm_types: Mapping[str, str]) -> Network:
        if not vm_types:
            return network
        chosen = self._checked_vm_types(vm_types)
        key = (id(network), tuple(sorted(chosen.items())))
        if key not in self._variants:
            self._variants[key] = with_vm_types(network, self.catalogue, chosen)
        return self._variants[key]

    def _checked_vm_types(self, vm_types: Mapping[str, str]) -> dict[str, str]:
        chosen = {}
        providers = {region.partition(":")[0] for region in self._knowledge.regions()}
        for where, name in vm_types.items():
            place = where if where in providers else self.resolve(where, "vm_type").region_id
            provider = place.partition(":")[0]
            vm_id = name if ":" in name else f"{provider}:{name}"
            if vm_id not in self.catalogue.vm_types:
                known = ", ".join(
                    vm.partition(":")[2]
                    for vm in self.catalogue.vm_types
                    if vm.startswith(provider)
                )
                raise InputError(
                    "vm_type",
                    f"is not a VM type of {provider} in the catalogue",
                    value=name,
                    remedy=f"Known are {known}; a catalogue file of your own can add more.",
                )
            chosen[place] = vm_id
        return chosen

    def _forbidden(
        self, ends: Mapping[str, str], avoid: Sequence[str], allow: Sequence[str]
    ) -> frozenset[str]:
        if not avoid and not allow:
            return frozenset()
        known = self._knowledge.regions()
        open_regions = permitted(self.catalogue, allow=allow, avoid=avoid, known=known)
        denied = resolve_many(avoid, self.catalogue, field="avoid", known=known).certain
        for field, end in ends.items():
            if end in denied:
                raise InputError(
                    field,
                    "is itself in a place to avoid",
                    value=end,
                    remedy="Rules bind relays and both ends: change the rule or the end.",
                )
        return frozenset(known) - open_regions - set(ends.values())

    # ---- what is known -------------------------------------------------------------------

    def links(self, src: str | None = None, dst: str | None = None) -> Iterator[Leg]:
        """Iterate over legs, all or those from or into one region."""
        source = self.resolve(src, "src").region_id if src else None
        target = self.resolve(dst, "dst").region_id if dst else None
        network = self.network
        sources: Iterable[str] = [source] if source else network.legs
        for name in sources:
            for leg in network.legs.get(name, {}).values():
                if target is None or leg.dst == target:
                    yield leg

    def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int = DEFAULT_CONNECTIONS,
        *,
        measured_only: bool = False,
    ) -> Matrix:
        """Return one figure for every pair of regions.

        Parameters
        ----------
        metric : str
            ``per-flow`` (Mbit/s), ``aggregate`` (Gbit/s of one VM pair), ``rtt`` (ms), ``fee``
            (first-tier egress, USD/GB) or ``relay-gain`` (best single relay over direct, one
            VM a region).
        connections : int
            For ``relay-gain``: TCP connections that a VM opens.
        measured_only : bool
            Leave out regions none of whose throughput was measured, also as relays.
        """
        import numpy as np

        if metric not in MATRIX_METRICS:
            raise InputError("metric", f"must be one of {', '.join(MATRIX_METRICS)}", value=metric)
        network = self.network
        if measured_only:
            network = network.restricted_to(
                {end for leg in network if _is_measured(leg) for end in (leg.src, leg.dst)}
            )
        prices = CataloguePrices(self.catalogue, network)

        def fee(leg: Leg) -> float:
            try:
                return prices.egress_usd_per_gb(leg.src, leg.dst, 1.0)
            except DataError:
                return float("nan")  # a provider without prices

        figure: dict[str, Callable[[Leg], float]] = {
            "per-flow": lambda leg: leg.per_flow_mbps.expected,
            "aggregate": lambda leg: leg.aggregate_gbps.expected,
            "rtt": lambda leg: leg.rtt_ms.expected,
            "fee": fee,
            "relay-gain": lambda leg: leg.rate_gbps(connections),
        }
        regions = tuple(network.sites)
        index = network.index
        values = np.full((len(regions), len(regions)), np.nan)
        for leg in network:
            values[index[leg.src], index[leg.dst]] = figure[metric](leg)
        if metric == "relay-gain":
            values = _relay_gain(values, network)
        return Matrix(metric, _UNITS[metric], regions, values, network.snapshot)


def _is_measured(leg: Leg) -> bool:
    return "measured" in {leg.aggregate_gbps.source, leg.per_flow_mbps.source}


def _relay_gain(direct_gbps: NDArray[np.float64], network: Network) -> NDArray[np.float64]:
    import numpy as np

    from planner.all_pairs import best_relays

    egress, ingress = (np.array(caps) for caps in network.caps())
    known = np.nan_to_num(direct_gbps)
    best = best_relays(known, egress, ingress).rate_gbps.astype(float)
    capped = np.minimum(np.minimum(known, egress[:, None]), ingress[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain: NDArray[np.float64] = np.where(capped > 0, best / capped, np.nan)
    np.fill_diagonal(gain, np.nan)
    return gain


def _refuse_old(leg: Leg, now_s: float, max_age_s: float) -> None:
    estimate = leg.aggregate_gbps
    if estimate.measured_at_s is None:
        raise DataError(
            f"{leg.src} -> {leg.dst} has not been measured (its figure is {estimate.source}), and "
            "a greatest age was asked for. Measure or import it, or leave the age out."
        )
    age_s = now_s - estimate.measured_at_s
    if age_s > max_age_s:
        raise DataError(
            f"{leg.src} -> {leg.dst} was last measured {age_s / 86400:.1f} days ago, more than the "
            f"{max_age_s / 86400:g} days asked for. Measure it again, or allow older data."
        )


def _checked_billing(month_to_date_gb: Mapping[str, float]) -> Mapping[str, float]:
    for provider, volume_gb in month_to_date_gb.items():
        if not 0 <= volume_gb < float("inf"):
            raise InputError(
                f"month_to_date {provider}", "must be a volume of 0 or more", value=volume_gb
            )
    return month_to_date_gb

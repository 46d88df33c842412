"""The library's face: one object that plans, and shows what it knows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from planner.model.aliases import Resolution, resolve
from planner.model.answer import Answer
from planner.model.baseline import with_vm_types
from planner.model.catalogue import Catalogue, Region
from planner.model.errors import InputError
from planner.model.network import Link, Network, Site, Snapshot
from planner.transfer.plan import Plan
from planner.transfer.request import (
    DEFAULT_CANDIDATES,
    DEFAULT_CONNECTIONS,
    DEFAULT_TIME_VALUE_USD_PER_H,
    DEFAULT_VOLUME_GB,
    Objective,
)
from relayd.questions.circumstances import Circumstances, CommonOptions
from relayd.questions.transfer import plan_transfer
from relayd.sources.link_table import LinkTable
from relayd.sources.matrices import MATRIX_METRICS, Matrix, MatrixMetric, matrix_of
from relayd.sources.stored import Knowledge
from relayd.store.location import Place

if TYPE_CHECKING:
    from planner.broadcast.plan import BroadcastPlan
    from planner.broadcast.request import BroadcastObjective
    from planner.model.link_states import LinkState
    from planner.placement.plan import ReducePlacement, TaskPlacement
    from planner.placement.request import Links, PlacementObjective
    from planner.replanning.plan import Replan
    from planner.schedule.plan import SchedulePlan
    from planner.schedule.request import RatesBound
    from planner.shuffle.plan import ShufflePlan
    from planner.shuffle.request import ShuffleObjective

MOST_NETWORKS_KEPT = 64
MOST_VARIANTS_KEPT = 8


class Wan:
    """The wide-area network as far as it is known, and what to do on it.

    Make one with :func:`relayd.open`. It reads the newest snapshot when first asked and keeps
    it; :meth:`refresh` looks for a newer one.
    """

    def __init__(self, catalogue: Catalogue, db: Place | None) -> None:
        self.catalogue = catalogue
        self._knowledge = Knowledge(catalogue, db)
        self._whole: Network | None = None
        self._parts: dict[tuple[str, str], Network] = {}
        self._variants: dict[tuple[object, ...], Network] = {}
        self._now: dict[int, tuple[Network, Mapping[tuple[str, str], LinkState], Network]] = {}

    def __repr__(self) -> str:
        """Say what it rests on."""
        return f"<Wan on snapshot {self._knowledge.snapshot.id}>"

    @property
    def snapshot(self) -> Snapshot:
        """The state of knowledge that answers rest on."""
        return self._knowledge.snapshot

    @property
    def network(self) -> Network:
        """The whole graph of estimates, bounds widened for age, and links as they are now."""
        return self._as_now(self._long_run)

    @property
    def _long_run(self) -> Network:
        if self._whole is None:
            self._whole = self._knowledge.network().aged(time.time())
        return self._whole

    def refresh(self) -> Snapshot:
        """Forget what was read, so that the next answer rests on the newest snapshot."""
        self._knowledge.forget()
        self._whole = None
        self._parts.clear()
        self._variants.clear()
        self._now.clear()
        return self.snapshot

    def refresh_link_states(self) -> Mapping[tuple[str, str], LinkState]:
        """Read again which links are down or degraded; the snapshot stays. Returns them."""
        self._now.clear()
        return self._knowledge.link_states(anew=True)

    # ---- graphs that questions rest on -----------------------------------------------------

    def network_between(self, src: str, dst: str, vm_types: Mapping[str, str] = {}) -> Network:
        """Return at least the links that a plan between two regions needs.

        Parameters
        ----------
        src, dst : str
            Region ids.
        vm_types : mapping
            Region or provider to VM type, both as ids of the catalogue.
        """
        network = self._whole
        if network is None:
            if (src, dst) not in self._parts and len(self._parts) >= 2:
                network = self._long_run  # many pairs: reading all once is cheaper
            elif (src, dst) not in self._parts:
                part = self._knowledge.network(between=(src, dst))
                self._parts[src, dst] = part.aged(time.time())
        return self._with_vm_types(network or self._parts[src, dst], vm_types)

    def network_of(self, regions: Sequence[str], vm_types: Mapping[str, str] = {}) -> Network:
        """Return the whole graph, with regions of the catalogue that it does not have yet."""
        network = self._long_run
        if further := [region for region in regions if region not in network.sites]:
            network = self._knowledge.network(further=further).aged(time.time())
        return self._with_vm_types(network, vm_types)

    def _with_vm_types(self, network: Network, vm_types: Mapping[str, str]) -> Network:
        if not vm_types:
            return self._as_now(network)
        key = (id(network), tuple(sorted(vm_types.items())))
        if key not in self._variants:
            if len(self._variants) >= MOST_VARIANTS_KEPT:
                self._variants.clear()
            self._variants[key] = with_vm_types(network, self.catalogue, dict(vm_types))
        return self._as_now(self._variants[key])

    def _as_now(self, network: Network) -> Network:
        """Lay links that are down or degraded over a network."""
        states = self._knowledge.link_states()
        if not states:
            return network
        kept = self._now.get(id(network))
        if kept is None or kept[1] is not states:
            from planner.model.link_states import overlaid

            if len(self._now) > MOST_NETWORKS_KEPT:
                self._now.clear()
            # Kept with what it was made of, so that the identity stays taken.
            kept = self._now[id(network)] = (network, states, overlaid(network, states))
        return kept[2]

    # ---- names ---------------------------------------------------------------------------

    def regions(self) -> list[Region]:
        """Return the catalogue's baseline regions and all measured ones."""
        return [self.catalogue.region(name) for name in self._knowledge.regions()]

    def known_regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""
        return self._knowledge.regions()

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
        budget_usd: float | None = None,
        deadline_s: float | None = None,
        min_throughput_gbps: float | None = None,
        relays: str = "any",
        max_age_s: float | None = None,
        frontier: bool = False,
        candidates: int = DEFAULT_CANDIDATES,
        **common: Unpack[CommonOptions],
    ) -> Plan:
        """Recommend how to move a volume from one region to another.

        Parameters
        ----------
        src, dst : str
            Region ids, bare region names, aliases or cities.
        volume_gb, objective, time_value_usd_per_h, budget_usd, deadline_s, min_throughput_gbps
            See :class:`planner.transfer.request.TransferRequest`.
        relays : str
            ``any``, ``one``, ``none``, or the name of the only relay to consider.
        max_age_s : float, optional
            Refuse to answer from measurements older than this.
        frontier : bool
            Whether to add the cost-time frontier.
        candidates : int
            How many single relays to compare at most: the best and its alternatives.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        return plan_transfer(
            self,
            src,
            dst,
            Circumstances(**common),
            volume_gb=volume_gb,
            objective=objective,
            time_value_usd_per_h=time_value_usd_per_h,
            budget_usd=budget_usd,
            deadline_s=deadline_s,
            min_throughput_gbps=min_throughput_gbps,
            relays=relays,
            max_age_s=max_age_s,
            frontier=frontier,
            candidates=candidates,
        )

    def shuffle(
        self,
        demands_gb: Any,
        *,
        regions: Sequence[str] | None = None,
        objective: ShuffleObjective = "time",
        deadline_s: float | None = None,
        relays: str = "any",
        frontier: bool = False,
        **common: Unpack[CommonOptions],
    ) -> ShufflePlan:
        """Recommend how to run many transfers at once, over VMs that they share.

        Parameters
        ----------
        demands_gb : mapping, sequence, data frame or array
            GB by source and destination; see :func:`planner.model.demands.demands_gb`.
        regions : sequence of str, optional
            Names of an array's rows and columns.
        objective, deadline_s, relays
            See :class:`planner.shuffle.request.ShuffleRequest`.
        frontier : bool
            Whether to add the cost-time frontier.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        from relayd.questions.shuffle import plan_shuffle

        return plan_shuffle(
            self,
            demands_gb,
            Circumstances(**common),
            regions=regions,
            objective=objective,
            deadline_s=deadline_s,
            relays=relays,
            frontier=frontier,
        )

    def broadcast(
        self,
        src: str,
        destinations: Sequence[str],
        *,
        volume_gb: float = DEFAULT_VOLUME_GB,
        objective: BroadcastObjective = "value",
        time_value_usd_per_h: float = DEFAULT_TIME_VALUE_USD_PER_H,
        deadline_s: float | None = None,
        relays: str = "any",
        frontier: bool = False,
        **common: Unpack[CommonOptions],
    ) -> BroadcastPlan:
        """Recommend how to bring one volume to several regions, forwarding copies where it pays.

        Parameters
        ----------
        src : str
            Region id, bare region name, alias or city.
        destinations : sequence of str
        volume_gb, objective, time_value_usd_per_h, deadline_s, relays
            See :class:`planner.broadcast.request.BroadcastRequest`.
        frontier : bool
            Whether to add the cost-time frontier.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        from relayd.questions.broadcast import plan_broadcast

        return plan_broadcast(
            self,
            src,
            destinations,
            Circumstances(**common),
            volume_gb=volume_gb,
            objective=objective,
            time_value_usd_per_h=time_value_usd_per_h,
            deadline_s=deadline_s,
            relays=relays,
            frontier=frontier,
        )

    def replan(
        self,
        plan: Answer | Mapping[str, Any] | str,
        *,
        moved_gb: float | Mapping[tuple[str, str], float],
        elapsed_s: float,
        changes: int = 0,
        month_to_date_gb: Mapping[str, float] = {},
        vm_types: Mapping[str, str] = {},
    ) -> Replan:
        """Say whether to keep to a plan in progress or to change, on the newest numbers.

        Parameters
        ----------
        plan : Plan, ShufflePlan, BroadcastPlan, mapping or str
            The plan, or its JSON.
        moved_gb, elapsed_s
            What has arrived, and since when; see
            :func:`planner.replanning.progress.in_progress`.
        changes : int
            How often the plan was changed before: each asks for another margin.
        month_to_date_gb, vm_types
            See :class:`relayd.questions.circumstances.Circumstances`.

        Raises
        ------
        InputError, DataError
            See :mod:`planner.model.errors`.
        """
        from relayd.questions.replanning import replan_in_progress

        return replan_in_progress(
            self,
            plan,
            Circumstances(month_to_date_gb=month_to_date_gb, vm_types=vm_types),
            moved_gb=moved_gb,
            elapsed_s=elapsed_s,
            changes=changes,
        )

    def schedule(
        self,
        transfers: Any = None,
        *,
        existing: SchedulePlan | Mapping[str, Any] | None = None,
        now_s: float = 0.0,
        rates: RatesBound = "expected",
        relays: str = "any",
        explain: int = 10,
        **common: Unpack[CommonOptions],
    ) -> SchedulePlan:
        """Admit transfers with deadlines, and say at what rate each sends when over what.

        Parameters
        ----------
        transfers : iterable of mappings or TimedTransfer, or a data frame
            See :func:`planner.schedule.request.timed_transfers`.
        existing : SchedulePlan or mapping, optional
            A schedule in progress, whose promises are kept; or what its JSON holds.
        now_s : float
            Time on the schedule's clock; what was to be sent before is taken as sent.
        rates, relays, explain
            See :class:`planner.schedule.request.ScheduleRequest`.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`. Relays are used where a
            deadline needs them or fees are lower, so ``margin`` has no part.

        Raises
        ------
        InputError, DataError
            See :mod:`planner.model.errors`. A transfer that can't be admitted is not an error.
        """
        from relayd.questions.schedule import plan_schedule

        return plan_schedule(
            self,
            transfers,
            Circumstances(**common),
            existing=existing,
            now_s=now_s,
            rates=rates,
            relays=relays,
            explain=explain,
        )

    def place_reduce(
        self,
        input_gb: Any,
        *,
        selectivity: float = 1.0,
        links: Links = "hose",
        objective: PlacementObjective = "time",
        budget_usd: float | None = None,
        deadline_s: float | None = None,
        reduce_in: Sequence[str] = (),
        **common: Unpack[CommonOptions],
    ) -> ReducePlacement:
        """Recommend which fraction of a reduce stage to run in which region.

        Parameters
        ----------
        input_gb : mapping, series, or rows of region and GB
        selectivity, links, objective, budget_usd, deadline_s
            See :class:`planner.placement.request.ReduceRequest`.
        reduce_in : sequence of str
            Regions that may reduce; those with input if empty.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`. Rules say where to reduce;
            nothing is relayed.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        from relayd.questions.placement import place_reduce

        return place_reduce(
            self,
            input_gb,
            Circumstances(**common),
            selectivity=selectivity,
            links=links,
            objective=objective,
            budget_usd=budget_usd,
            deadline_s=deadline_s,
            reduce_in=reduce_in,
        )

    def place_tasks(
        self,
        tasks: Any,
        traffic_gb: Any,
        machines: Any,
        *,
        time_limit_s: float = 10.0,
        **common: Unpack[CommonOptions],
    ) -> TaskPlacement:
        """Recommend on which VM to run which task, so that their transfers end soonest.

        Parameters
        ----------
        tasks : mapping or sequence
            Task to the CPUs that it takes; or names, or mappings of ``id`` and ``cpus``.
        traffic_gb : mapping, sequence, data frame or array
            GB by source and destination task, in the shapes of
            :func:`planner.model.demands.demands_gb`; an array is in the order of the tasks.
        machines : sequence
            VMs, as mappings of ``id``, ``region`` and ``cpus``.
        time_limit_s : float
            For the exact search; 0 leaves it out.
        **common
            See :class:`relayd.questions.circumstances.Circumstances`; of it, connections, prices
            and VM types take part.

        Raises
        ------
        InputError, InfeasibleError, DataError
            See :mod:`planner.model.errors`.
        """
        from relayd.questions.placement import place_tasks

        return place_tasks(
            self, tasks, traffic_gb, machines, Circumstances(**common), time_limit_s=time_limit_s
        )

    # ---- what is known -------------------------------------------------------------------

    def links(self, src: str | None = None, dst: str | None = None) -> LinkTable:
        """Return links, all or those from or into one region."""
        source = self.resolve(src, "src").region_id if src else None
        target = self.resolve(dst, "dst").region_id if dst else None
        network = self.network
        sources: Iterable[str] = [source] if source else network.links
        return LinkTable(
            link
            for name in sources
            for link in network.links.get(name, {}).values()
            if target is None or link.dst == target
        )

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
            (first-tier egress, USD/GB), ``relay-gain`` (best single relay over direct, one VM a
            region), ``loss`` (%) or ``age`` (s since the newest sample of the link).
        connections : int
            For ``relay-gain``: TCP connections that a VM opens.
        measured_only : bool
            Leave out regions none of whose throughput was measured, also as relays.
        """
        if metric not in MATRIX_METRICS:
            raise InputError("metric", f"must be one of {', '.join(MATRIX_METRICS)}", value=metric)
        network = self.network
        if measured_only:
            network = network.restricted_to(
                {end for link in network if _is_measured(link) for end in (link.src, link.dst)}
            )
        return matrix_of(network, self.catalogue, metric, connections)


def _is_measured(link: Link) -> bool:
    return "measured" in {link.aggregate_gbps.source, link.per_flow_mbps.source}

"""The network, prices and expectations of a fleet, which campaigns rest on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from planner.model.catalogue import Catalogue
from planner.model.link import Link
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices, Prices
from probes.campaign.costing import CampaignCost, Meter, campaign_cost
from probes.campaign.method import Method
from probes.campaign.probing import warm_up_s
from probes.campaign.ramping import with_ramps
from probes.campaign.rounds import Round
from probes.campaign.specification import CampaignSpec
from probes.campaign.stages import CampaignInputs
from probes.campaign.tasks import ProbeTask
from probes.estimation import Estimator
from probes.fleet.hosts import Fleet
from probes.fleet.sites import fleet_sites
from probes.samples import Samples
from relayd.snapshots.building import estimated
from relayd.store import Store

ROUND_GAP_S = 0.5
"""Time to start a round: servers and a jittered start."""
USUAL_RTT_MS = 150.0


class MeasuredFleet:
    """A fleet with what a catalogue and a store say of it.

    Parameters
    ----------
    fleet : Fleet
    catalogue : Catalogue
    store : Store | None
        None to go by the catalogue alone.
    """

    def __init__(self, fleet: Fleet, catalogue: Catalogue, store: Store | None) -> None:
        self.fleet = fleet
        self.catalogue = catalogue
        self._store = store
        sites = fleet_sites(fleet, catalogue)
        self._vm_types = {region: site.vm_type for region, site in sites.items() if site.vm_type}
        self._usd_per_gb = {
            host.region: host.egress_usd_per_gb
            for host in fleet
            if host.egress_usd_per_gb is not None
        }
        self._stated_gbps = {
            region: (site.egress_gbps, site.ingress_gbps) for region, site in sites.items()
        }

    def network(self) -> Network:
        """Return the fleet's regions as the samples so far let them stand, aged to now."""
        if self._store and (last := self._store.samples.last_id()):
            estimator = estimated(
                self._store,
                self.catalogue,
                through=last,
                chosen=self._vm_types,
                stated_gbps=self._stated_gbps,
            ).estimator
        else:
            estimator = Estimator(Samples(), self.catalogue, self._vm_types, self._stated_gbps)
        # Regions outside of the catalogue count from their first sample.
        whole = estimator.network(Snapshot("", "", ""))
        return whole.with_(
            restricted_to={host.region for host in self.fleet}, aged_to_s=time.time()
        )

    def inputs(self, network: Network) -> CampaignInputs:
        """Return what a campaign needs to choose probes."""
        prices = _OverriddenPrices(CataloguePrices(self.catalogue, network), self._usd_per_gb)
        return CampaignInputs(self.fleet, self.network, prices)

    def meter(self) -> Meter:
        """Return a meter that prices what is sent."""
        return Meter(self.catalogue, usd_per_gb=self._usd_per_gb)

    def cost(self, rounds: list[Round]) -> CampaignCost:
        """Return what rounds cost."""
        return campaign_cost(
            rounds,
            self.fleet.region_of,
            self.catalogue,
            usd_per_gb=self._usd_per_gb,
            gap_s=ROUND_GAP_S,
        )

    def link(self, network: Network, src: str, dst: str) -> Link | None:
        """Return the link between two hosts."""
        return network.links.get(self.fleet[src].region, {}).get(self.fleet[dst].region)

    def rtt_ms(self, network: Network) -> Callable[[str, str], float]:
        """Return the function from source and destination host to the round-trip time."""

        def rtt_ms(src: str, dst: str) -> float:
            link = self.link(network, src, dst)
            return link.rtt_ms.expected if link else USUAL_RTT_MS

        return rtt_ms

    def with_method(
        self,
        tasks: Sequence[ProbeTask],
        method: Method,
        network: Network,
        before: Iterable[ProbeTask],
        spec: CampaignSpec,
    ) -> list[ProbeTask]:
        """Return tasks with the method's ramps and UDP, and what the campaign has them do first.

        Parameters
        ----------
        before : iterable of ProbeTask
            Tasks of earlier stages.
        spec : CampaignSpec
        """
        rtt_ms = self.rtt_ms(network)
        return with_ramps(
            tasks,
            method,
            self.fleet,
            lambda src, dst: self.link(network, src, dst),
            before,
            lambda task: warm_up_s(task, rtt_ms),
            spec.flow_first_s,
            spec.aggregate_first_s,
        )


class _OverriddenPrices:
    """Prices of the catalogue, except where the fleet file states others."""

    def __init__(self, prices: Prices, usd_per_gb: Mapping[str, float]) -> None:
        self._prices = prices
        self._usd_per_gb = usd_per_gb

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        if src in self._usd_per_gb:
            return self._usd_per_gb[src]
        return self._prices.egress_usd_per_gb(src, dst, volume_gb)

    def vm_usd_per_h(self, region: str) -> float:
        return self._prices.vm_usd_per_h(region)

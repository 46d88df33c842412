"""Inputs of campaigns from a store: a fleet's estimates and prices, and caps of VMs."""

from __future__ import annotations

import time

from planner.model.catalogue import Catalogue
from planner.model.network import Network, Snapshot
from probes.analysis.evidence import Record
from probes.analysis.fleet_caps import CAP_NAMES, vm_caps
from probes.campaign.costing import Meter
from probes.campaign.specification import CampaignSpec, Method
from probes.campaign.stages import CampaignInputs
from probes.estimation import Estimator
from probes.fleet.file import fleet_sites
from probes.fleet.hosts import Fleet
from probes.samples import Samples
from relayd.snapshots.building import estimated
from relayd.store import Store


class MeasuredFleet:
    """A fleet with its estimates and prices by a catalogue, and a store if there is one.

    ``stated_usd_per_gb`` are the fleet file's egress prices, by region; they go before the
    catalogue's.
    """

    def __init__(self, fleet: Fleet, catalogue: Catalogue, store: Store | None) -> None:
        self.fleet = fleet
        self.catalogue = catalogue
        self._store = store
        sites = fleet_sites(fleet, catalogue)
        self._vm_types = {region: site.vm_type for region, site in sites.items() if site.vm_type}
        self.stated_usd_per_gb = {
            host.region: host.egress_usd_per_gb
            for host in fleet
            if host.egress_usd_per_gb is not None
        }
        self._stated_gbps = {
            region: (site.egress_gbps, site.ingress_gbps) for region, site in sites.items()
        }

    def network(self) -> Network:
        """Return the network of the fleet's regions by the samples so far, aged to now."""
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

    def inputs(self, spec: CampaignSpec, method: Method) -> CampaignInputs:
        """Gather the inputs by which a campaign chooses and sizes its probes."""
        return CampaignInputs(spec, method, self.fleet, self.network, self.meter().price)

    def meter(self) -> Meter:
        """Return a meter that prices volumes by the fleet file and the catalogue."""
        return Meter(self.catalogue, self.stated_usd_per_gb)


def measured_caps(store: Store, catalogue: Catalogue) -> list[Record]:
    """Return the newest caps in a store, those of VMs that are worth recreating first."""
    samples = (sample for metric in CAP_NAMES for sample in store.samples.read(metric=metric))
    return vm_caps(samples, catalogue)

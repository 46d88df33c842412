"""The samples behind each figure of a link, as the newest snapshot used them."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind
from planner.model.link_array import Origins
from planner.model.network import Network
from probes.estimation.current_samples import PRIVATE, current_samples
from probes.estimation.link_samples import LinkSamples
from probes.estimation.provenance import FigureProvenance, Provenance, UsedSeries
from probes.samples import TRANSFER, NameTable, Samples
from relayd.store.opening import Store
from relayd.times import utc_text

MOST_LINKS_READ = 24  # other links whose samples are looked up for one figure; more are named alone

MOST_LINKS_NAMED = 200

_WHY_NOT = {
    "per_flow_mbps": "taken with VM types other than the ones in use",
    "aggregate_mbps": "taken with other VM types, or with fewer connections",
    "loss_pct": "nothing came through at all, which is what a filter looks like",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Samples of a series that did not count, and why."""

    reason: str
    samples: int


@dataclass(frozen=True, slots=True)
class SeriesEvidence:
    """A link and metric that a figure rests on, with the samples that counted, the newest first.

    Without `was_read` there are none.
    """

    series: UsedSeries
    samples: Samples
    left_out: list[LeftOut]
    was_read: bool = True


@dataclass(frozen=True, slots=True)
class FigureEvidence:
    """A figure with the samples that it rests on; `further` links took part and are not named."""

    origin: FigureProvenance
    used: list[SeriesEvidence]
    further: int = 0


def evidence_of(
    store: Store, network: Network, catalogue: Catalogue, src: str, dst: str
) -> list[FigureEvidence]:
    """Return the samples behind each figure of a link.

    The network is the store's snapshot, as it was saved; or a baseline, which rests on no samples.
    Raises :class:`DataError` if nothing is known of the link, :class:`InputError` if the snapshot
    was removed meanwhile.
    """
    through = 0
    if network.snapshot.source != "baseline":
        through = store.snapshots.get(network.snapshot.id).samples_through
    address = network.link(src, dst).address
    return [
        FigureEvidence(
            origin,
            [
                _used(store, series, network, catalogue, through, address)
                if number < MOST_LINKS_READ
                else SeriesEvidence(series, Samples(), [], was_read=False)
                for number, series in enumerate(origin.series[:MOST_LINKS_NAMED])
            ],
            max(0, len(origin.series) - MOST_LINKS_NAMED),
        )
        for origin in Provenance(network, catalogue).of(src, dst)
    ]


def _used(
    store: Store,
    series: UsedSeries,
    network: Network,
    catalogue: Catalogue,
    through: int,
    address: AddressKind,
) -> SeriesEvidence:
    """Leave out of a link's samples what the estimator leaves out, by its own functions."""
    samples = store.samples.read(
        src=series.src, dst=series.dst, metric=series.metric, through=through
    )
    left_out: list[LeftOut] = []

    def leave_out(reason: str, samples: int) -> None:
        if samples:
            left_out.append(LeftOut(reason, samples))

    of_kind = (samples.rows["address"] == PRIVATE) == (address == "private")
    # Without pings over private addresses, those over public ones tell the round-trip time.
    if of_kind.any():
        leave_out("taken over the other kind of address", int((~of_kind).sum()))
        samples = samples[of_kind]
    sites = {end: network.sites[end] for end in (series.src, series.dst)}
    samples = samples.with_names(NameTable(sites))
    current = current_samples(samples)
    if current.before:
        at = utc_text(current.since_s)[:16].replace("T", " ")
        leave_out(f"from before the level changed on {at} UTC", current.before)
    finished = None
    if series.metric == "aggregate_mbps" and TRANSFER in samples.names:
        finished = store.samples.read(metric="transfer_s", through=through)
    of_link = LinkSamples(current, sites, catalogue, address, Origins(), finished)
    recent = len(of_link.recent(series.metric).rows)
    leave_out(
        "more than 30 days older than the newest, or beyond 64",
        len(samples) - current.before - recent,
    )
    link = network.links.get(series.src, {}).get(series.dst)
    rtts_ms = np.full((2, 2), link.rtt_ms.expected if link else nan)
    counted = of_link.with_rtts_ms(rtts_ms).counted(series.metric)
    for agreement in counted.judged.values():
        for source, disputed, _ in agreement.disputed:
            leave_out(f"contradict what others measured: reported by {source}", len(disputed))
            recent -= len(disputed)
    for achieved in counted.achieved.values():
        leave_out("transfers and paced tests, which are lower bounds", achieved.at_least)
        recent -= achieved.at_least
    why = _WHY_NOT.get(series.metric, "taken with VM types other than the ones in use")
    if of_link.is_mixed:
        why += ", or reported by others than whose samples the figure rests on"
    leave_out(why, recent - len(counted.rows))
    fitting = counted.rows[counted.rows["value"] <= series.most]
    leave_out("so fast that the VMs' caps were the limit", len(counted.rows) - len(fitting))
    return SeriesEvidence(series, of_link.samples[fitting["place"][::-1]], left_out)

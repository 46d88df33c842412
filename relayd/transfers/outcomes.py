"""Finished transfers as samples: listed, disputed, retracted and confirmed like all others.

One is the time that it took. Over the direct path another is what it carried between one VM and
another, on which estimates rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import ceil
from time import time as clock

from planner.fields.kinds import LEAST_FIGURE
from planner.model.achieved import TEST_S
from planner.model.baseline.modelled_links import least_cap
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.importers.limits import PhysicalGate
from probes.metrics import MAX_DURATION_S
from probes.samples import MIN_TIME_S, TRANSFER, Sample
from relayd.questions.holds import is_of_many
from relayd.questions.resolving import NetworkView
from relayd.store.database import Database
from relayd.store.samples.ingest import Batch, SampleWriter
from relayd.transfers.expected import DIRECT
from relayd.transfers.tracked import StoredTransfer, tracked


def store_outcome(
    database: Database, row: StoredTransfer, batch: Batch, names: NetworkView
) -> None:
    """Store the samples that a finished transfer is, in the caller's transaction.

    The batch tells who reports. What network cards can't have carried is quarantined, as with all
    samples.
    """
    gate = PhysicalGate(names.catalogue)
    if samples := [gate.judged(one) for one in _samples(row, names)]:
        writer = SampleWriter(database, batch)
        writer.take(samples)
        writer.seal()


def _samples(row: StoredTransfer, names: NetworkView) -> Iterator[Sample]:
    took_s, expected = (row.ended_s or 0.0) - row.began_s, tracked(row, clock()).expected
    if row.state != "finished" or not 0 < took_s <= MAX_DURATION_S or row.began_s < MIN_TIME_S:
        return
    if row.plan and is_of_many(json.loads(row.plan)):
        return
    detail = {name: getattr(row, name) for name in ("volume_gb", "via", "who", "label")}
    detail |= {"transfer": row.id, "limited_by": row.limited_by}
    if expected and expected.throughput_gbps:
        detail["planned_gbps"] = expected.throughput_gbps
    sites = names.network_of([row.src, row.dst]).sites
    if pools := [end for end in (row.src, row.dst) if sites[end].vms]:
        detail["pools"] = pools
    whole = Sample(row.src, row.dst, "transfer_s", took_s, row.began_s, TRANSFER)
    yield whole.with_detail(**detail)
    if row.via != DIRECT or took_s < TEST_S:
        return  # a short one is all beginning
    plan = json.loads(row.plan) if row.plan else {}
    asked = plan.get("request")
    asked = asked if isinstance(asked, Mapping) else {}
    connections, gbps = asked.get("connections"), BITS_PER_BYTE * row.moved_gb / took_s
    if gbps < LEAST_FIGURE:
        return
    vms = (expected.most_vms or expected.vms) if expected else None
    if vms is None:  # as many as its rate takes
        vms = ceil(gbps / least_cap(sites[row.src], sites[row.dst]).expected)
    rate = whole._replace(
        metric="aggregate_mbps",
        value=MBPS_PER_GBPS * gbps / vms,
        duration_s=took_s,
        connections=connections if isinstance(connections, int) and connections > 0 else None,
    )
    yield rate.with_detail(**detail, vms=vms)

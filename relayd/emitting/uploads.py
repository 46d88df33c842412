"""A plan as a script that sends a folder, or a bucket by rclone, to an object store.

A relay passes on what a tool sends through ``HTTPS_PROXY``: an HTTP proxy that takes CONNECT
(RFC 9110) ends the tool's TCP connection and opens its own, so TCP is split, and TLS still runs
from end to end. All four tools honour the variable.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from planner.model.errors import InputError
from relayd.catalogue.copies import copies, filled, shell
from relayd.emitting.buckets import SERVER_SIDE, host_of, is_within, one_lane, remotes
from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.text import addresses, by_number, header, lane_words, script, summary

PROXY_PORT = 3128  # registered for it, and what squid listens on


def upload(emission: Emission, tool: str) -> str:
    """Return a script that sends a folder, or a bucket by rclone, as ``copies.toml`` has it.

    It divides files over the plan's lanes, checks what arrived, and sums up.

    Raises InputError if the plan ends at a provider to whose store the tool does not send.
    """
    how, dst = copies()["upload"][tool], emission.destinations[0].region
    provider = dst.partition(":")[0]
    if provider != how.get("provider", provider):
        problem = f"is {tool}, which uploads to {how['store']}, and the plan ends in {dst}"
        raise InputError("emit", problem, remedy="`--emit rclone` uploads to any store.")
    store = provider if provider in STORES else "aws"  # S3's is what most others offer
    how, said = {**how, **how.get(store, {})}, copies()["notes"]
    notes, flags = how["notes"], how.get("flags", "")
    source, destination = "", "" if provider == "azure" else emission.dst_bucket
    if tool == "rclone":
        source, destination = remotes(emission)
        if is_within(emission):  # the store copies
            emission, notes = one_lane(emission), [SERVER_SIDE]
            flags = f"  --server-side-across-configs \\\n{flags}"
    several = len(emission.lanes) > 1
    notes = [*notes, *([said["part"]] if "@part@" in how["settings"] else [])]
    if emission.relays:
        notes.append(said["proxy"])
    if several:
        notes += [said["shares"], *(lane_words(lane, to_vms=False) for lane in emission.lanes)]
    choices = []
    for lane in emission.lanes:
        threads, processes = side_by_side(lane.connections)
        part = part_mib(lane, emission.volume_gb, STORES[store])
        known = {"threads": threads, "processes": processes, "connections": lane.connections}
        settings = filled(how["settings"], {"part": part, **known})
        if lane.relay:
            through = f'"http://${lane.relay.variable}:${{PROXY_PORT:-{PROXY_PORT}}}"'
            proxy = f"{addresses([lane.relay])}export HTTPS_PROXY={through}\n"
            if source:  # what a bucket is read over stays in its region
                proxy += f'export NO_PROXY="{host_of(emission)}${{NO_PROXY:+,$NO_PROXY}}"\n'
            settings = proxy + settings
        choices.append((f"{lane.regions}, from {lane.src.words}", settings.splitlines()))
    lines = by_number("LANE", "which lane to send, each from its source VM", choices)
    if several:
        lines += f'shares="{" ".join(f"{lane.share:.6g}" for lane in emission.lanes)}"\n\n'
        lines += shell("list_bucket" if source else "list_folder") + shell("divide")
        if "$share" in how["listed"]:  # links carry the share of files, which the tool follows
            lines += shell("linked")
    lines += filled(how["listed" if several else "whole"], {"flags": flags}) + summary(emission)
    body = "".join(
        f'{name}="${{{name}:-{known}}}"\n' if known else f': "${{{name}:?{what}}}"\n'
        for name, known, what in (
            ("SOURCE", source, "a folder"),
            ("DESTINATION", destination, how["destination"]),
        )
    )
    body += "started=$(date +%s)\n"
    if "$temporary" in lines:
        body += shell("temporary")
    title = f"{'A copy' if source else 'An upload'} with {how['title']}"
    return script(header(emission, title, notes), body + lines)


# --- parts --------------------------------------------------------------------------------------

MIB = 1024**2
# Each connection should get a few parts, or the last ones are waited for alone.
PARTS_A_CONNECTION = 4
# Between two parts a connection is idle for about a round trip; with parts this many times what it
# sends in one, that is 5 %.
ROUND_TRIPS_A_PART = 20
# Beyond this a part that fails costs more than larger ones gain.
USUAL_MOST_MIB = 64


class PartLimits(NamedTuple):
    """Limits of a store: MiB of a part, and parts of an object."""

    least_mib: int
    most_mib: int
    parts: int


STORES = {
    # "Amazon S3 multipart upload limits": 5 MiB (but the last) to 5 GiB, 1 to 10,000 parts.
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html (2026-11)
    "aws": PartLimits(5, 5 * 1024, 10_000),
    # "Scalability and performance targets for Blob storage": blocks to 4000 MiB, 50,000 blocks.
    # https://learn.microsoft.com/azure/storage/blobs/scalability-targets (2026-11)
    "azure": PartLimits(1, 4000, 50_000),
    # "Parallel composite uploads": objects to 5 TiB, of at most 32 components, to which gcloud
    # keeps by itself: it takes larger ones where it must (its property
    # storage/parallel_composite_upload_component_size, Google Cloud SDK 528.0.0).
    # https://cloud.google.com/storage/docs/parallel-composite-uploads (2026-11)
    "gcp": PartLimits(1, 5 * 1024**2 // 32, 5 * 1024**2),
}


def part_mib(lane: Lane, volume_gb: float, limits: PartLimits) -> int:
    """Return the size of parts in MiB, as if the lane's share were one object.

    Large enough that a connection is hardly idle between parts and that the parts do not exceed
    the store's number; small enough that each connection gets a few; within the store's sizes.
    """
    volume_bytes = volume_gb * 1e9 * lane.share
    in_flight = lane.throughput_gbps * 1e9 / 8 / lane.connections * lane.rtt_ms / 1000.0
    busy = in_flight * ROUND_TRIPS_A_PART
    balanced = volume_bytes / (lane.connections * PARTS_A_CONNECTION)
    wanted = max(busy, min(balanced, USUAL_MOST_MIB * MIB))
    # Balance comes before idleness: a part that never runs next to others gains nothing.
    wanted = min(wanted, balanced)
    mib = max(ceil(wanted / MIB), ceil(volume_bytes / limits.parts / MIB), limits.least_mib)
    return min(mib, limits.most_mib)


def side_by_side(connections: int) -> tuple[int, int]:
    """Return the number of files to send at once, and of parts of each.

    Their product is the number of connections, or as little more as there are factors for.
    """
    parts = max(p for p in range(1, int(connections**0.5) + 1) if connections % p == 0)
    if parts * parts * 4 < connections:  # no balanced factors: a prime, for instance
        parts = int(connections**0.5)
    return ceil(connections / parts), parts

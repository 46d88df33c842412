"""A plan as a script that sends a folder, or a bucket by rclone, to an object store.

A relay passes on what a tool sends through ``HTTPS_PROXY``: an HTTP proxy that takes CONNECT
(RFC 9110) ends the tool's TCP connection and opens its own, so TCP is split, and TLS still runs
from end to end. All four tools honour the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import NamedTuple

from planner.model.errors import InputError
from relayd.catalogue.copies import copies, filled
from relayd.emitting.buckets import SERVER_SIDE, host_of, is_within, one_lane, remotes
from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.text import addresses, by_number, header, lane_words, script, summary

PROXY_PORT = 3128  # registered for it, and what squid listens on


def _text(name: str, of: str = "lines") -> str:
    return str(copies()[of][name])


def upload(
    emission: Emission,
    title: str,
    settings: Callable[[Lane], Sequence[str]],
    whole: str,
    listed: str,
    destination: str,
    notes: Sequence[str] = (),
    default: tuple[str, str] = ("", ""),
) -> str:
    """Return a script that sends a folder over a plan's lanes, checks it and sums up.

    Parameters
    ----------
    settings : callable
        From a lane to lines that set the tool up for it.
    whole : str
        Lines that upload everything.
    listed : str
        Lines that upload the files that ``$list`` names, relative to ``$folder``.
    destination : str
        What to say of ``DESTINATION``.
    default : (str, str)
        ``SOURCE``, where it is a bucket, and ``DESTINATION``, where they are known.
    """
    several = len(emission.lanes) > 1
    said = [*notes]
    if emission.relays:
        said.append(_text("proxy", "notes"))
    if several:
        said.append(_text("shares", "notes"))
        said += [lane_words(lane, to_vms=False) for lane in emission.lanes]
    choices = []
    for lane in emission.lanes:
        proxy = []
        if lane.relay:
            through = f'"http://${lane.relay.variable}:${{PROXY_PORT:-{PROXY_PORT}}}"'
            proxy = [*addresses([lane.relay]).splitlines(), f"export HTTPS_PROXY={through}"]
            # What a bucket is read over stays in its region.
            if default[0]:
                proxy.append(f'export NO_PROXY="{host_of(emission)}${{NO_PROXY:+,$NO_PROXY}}"')
        words = f"{lane.regions}, from {lane.src.words}"
        choices.append((words, [*proxy, *settings(lane)]))
    lines = by_number("LANE", "which lane to send, each from its source VM", choices)
    if several:
        lines += f'shares="{" ".join(f"{lane.share:.6g}" for lane in emission.lanes)}"\n\n'
        lines += (_text("list_bucket") if default[0] else _text("list_folder")) + _text("divide")
    lines += listed if several else whole
    body = "".join(
        f'{name}="${{{name}:-{known}}}"\n' if known else f': "${{{name}:?{what}}}"\n'
        for name, known, what in zip(
            ("SOURCE", "DESTINATION"), default, ("a folder", destination), strict=True
        )
    )
    body += "started=$(date +%s)\n"
    lines += summary(emission)
    if "$temporary" in lines:
        body += _text("temporary")
    return script(header(emission, title, said), body + lines)


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


# --- tools --------------------------------------------------------------------------------------


_RCLONE_PARTS = {"aws": "s3", "azure": "azureblob"}


def rclone(emission: Emission) -> str:
    """Return a script that copies with rclone (1.60 or later).

    Azure Blob and S3 take parts of one file at once; Google Cloud Storage takes a file over one
    connection, so there all connections are files.
    """
    provider = emission.destinations[0].region.partition(":")[0]
    store = provider if provider in STORES else "aws"  # S3's is what most others offer
    of_parts = _RCLONE_PARTS.get(store, "")

    def settings(lane: Lane) -> list[str]:
        files, streams = side_by_side(lane.connections) if of_parts else (lane.connections, 1)
        lines = [f"files=${{FILES_AT_ONCE:-{files}}}", f"streams=${{PARTS_AT_ONCE:-{streams}}}"]
        part = part_mib(lane, emission.volume_gb, STORES[store])
        return [*lines, *([f"part=${{PART:-{part}Mi}}"] if of_parts else [])]

    flags = ['--transfers "$files"', '--checkers "$files"', '--multi-thread-streams "$streams"']
    if of_parts:
        flags.append(f'--{of_parts}-upload-concurrency "$streams"')
        flags.append(f'--{of_parts}-chunk-size "$part"')
    one_file, default = _text("one_file", "notes"), remotes(emission)
    if is_within(emission):  # the store copies
        flags.insert(0, "--server-side-across-configs")
        emission, one_file = one_lane(emission), SERVER_SIDE
    tail = " \\\n".join(f"  {line}" for line in [*flags, '"$@"']) + "\n"

    def lines_of(source: str, names: str) -> str:
        ends = f'"{source}" "$DESTINATION"{names}'
        return f"rclone copy {ends} \\\n{tail}rclone check {ends} --one-way\n"

    return upload(
        emission,
        "A copy with rclone" if default[0] else "An upload with rclone",
        settings,
        lines_of("$SOURCE", ""),
        lines_of("$folder", ' --files-from-raw "$list"'),
        "a remote of rclone and a path, such as store:bucket/path",
        (one_file, *([_text("part", "notes")] if of_parts else [])),
        default,
    )


def to_store(emission: Emission, tool: str) -> str:
    """Return a script for the command line of a provider's own store, as ``copies.toml`` has it.

    Raises
    ------
    InputError
        If the plan ends at another provider.
    """
    how, dst = copies()["upload"][tool], emission.destinations[0].region
    if dst.partition(":")[0] != how["provider"]:
        problem = f"is {tool}, which uploads to {how['store']}, and the plan ends in {dst}"
        raise InputError("emit", problem, remedy="`--emit rclone` uploads to any store.")

    def settings(lane: Lane) -> list[str]:
        threads, processes = side_by_side(lane.connections)
        part = part_mib(lane, emission.volume_gb, STORES[how["provider"]])
        known = {"part": part, "connections": lane.connections}
        known |= {"threads": threads, "processes": processes}
        return filled(how["settings"], known).splitlines()

    title, notes = f"An upload with {how['title']}", (*how["notes"], _text("part", "notes"))
    listed = how["listed"]
    if "$share" in listed:  # links carry the share of files, which the tool follows
        listed = _text("linked") + listed
    default = ("", emission.dst_bucket if how["provider"] != "azure" else "")
    ends = how["destination"], notes, default
    return upload(emission, title, settings, how["whole"], listed, *ends)

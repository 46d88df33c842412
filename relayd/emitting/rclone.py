"""A plan as an rclone script: concurrent files and parts, sized for the destination store."""

from __future__ import annotations

from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.parts import STORES, part_mib, side_by_side
from relayd.emitting.uploads import PART_NOTE, upload


def rclone(emission: Emission) -> str:
    """Return a script that copies with rclone (1.60 or later).

    Azure Blob and S3 take parts of one file at once; Google Cloud Storage takes a file over one
    connection, so there all connections are files.
    """

    def settings(lane: Lane) -> list[str]:
        files, parts = _at_once(emission, lane)
        return [f"files=${{FILES_AT_ONCE:-{files}}}", f"streams=${{PARTS_AT_ONCE:-{parts}}}"] + [
            f"part=${{PART:-{size}}}" for size in _part(emission, lane)
        ]

    flags = ["--transfers", '"$files"', "--checkers", '"$files"']
    flags += ["--multi-thread-streams", '"$streams"', *_FLAGS.get(_store(emission), [])]
    command = 'rclone copy "$SOURCE" "$DESTINATION" \\\n'
    lines = [" ".join(flags[i : i + 2]) for i in range(0, len(flags), 2)]
    tail = " \\\n".join(f"  {line}" for line in [*lines, '"$@"']) + "\n"
    return upload(
        emission,
        "An upload with rclone",
        settings,
        command + tail,
        'rclone copy "$folder" "$DESTINATION" --files-from-raw "$list" \\\n' + tail,
        "a remote of rclone and a path, such as store:bucket/path",
        notes=(
            "One large file alone: set FILES_AT_ONCE=1 and PARTS_AT_ONCE to the connections. "
            "Memory: files times parts times the size of a part.",
            *([PART_NOTE] if _store(emission) in _FLAGS else []),
        ),
    )


_FLAGS = {
    "aws": ["--s3-upload-concurrency", '"$streams"', "--s3-chunk-size", '"$part"'],
    "azure": ["--azureblob-upload-concurrency", '"$streams"', "--azureblob-chunk-size", '"$part"'],
}


def _store(emission: Emission) -> str:
    """Return the provider whose store it is; S3's interface is what most others offer."""
    provider = emission.destinations[0].region.partition(":")[0]
    return provider if provider in STORES else "aws"


def _part(emission: Emission, lane: Lane) -> list[str]:
    store = _store(emission)
    if store not in _FLAGS:
        return []
    return [f"{part_mib(lane, emission.volume_gb, STORES[store])}Mi"]


def _at_once(emission: Emission, lane: Lane) -> tuple[int, int]:
    if _store(emission) not in _FLAGS:
        return lane.connections, 1
    return side_by_side(lane.connections)

"""A plan as scripts for the clouds' own tools: aws, azcopy, gcloud."""

from __future__ import annotations

from planner.model.errors import InputError
from relayd.emitting.lanes import Emission, Lane
from relayd.emitting.parts import STORES, part_mib, side_by_side
from relayd.emitting.uploads import PART_NOTE, upload


def aws_cli(emission: Emission) -> str:
    """Return a script for the AWS command line, version 1 or 2.

    Settings go into a copy of the user's configuration, which stays as it is. Source of the
    settings: ``aws help s3-config`` (1.45.11).
    """
    _must_be_store(emission, "aws", "aws-cli", "S3")

    def settings(lane: Lane) -> list[str]:
        part = part_mib(lane, emission.volume_gb, STORES["aws"])
        return [
            'cat "${AWS_CONFIG_FILE:-$HOME/.aws/config}" > "$temporary/config" 2> /dev/null || :',
            'export AWS_CONFIG_FILE="$temporary/config"',
            # The other client, crt, ignores the number of requests.
            "aws configure set s3.preferred_transfer_client classic",
            f"aws configure set s3.max_concurrent_requests {lane.connections}",
            f"part=${{PART:-{part}MB}}",
            'aws configure set s3.multipart_chunksize "$part"',
            'aws configure set s3.multipart_threshold "$part"',
        ]

    return upload(
        emission,
        "An upload with the AWS command line",
        settings,
        'aws s3 cp --recursive "$SOURCE" "$DESTINATION" "$@"\n',
        # Links carry the share of files, which the tool follows.
        _LINKED + 'aws s3 cp --recursive "$share" "$DESTINATION" "$@"\n',
        "s3://bucket/path",
        (PART_NOTE,),
        temporary=True,
    )


def azcopy(emission: Emission) -> str:
    """Return a script for AzCopy 10.

    Source of the settings: "Optimize the performance of AzCopy with Azure Storage"
    (https://learn.microsoft.com/azure/storage/common/storage-use-azcopy-optimize, 2026-11).
    """
    _must_be_store(emission, "azure", "azcopy", "Azure Blob")

    def settings(lane: Lane) -> list[str]:
        part = part_mib(lane, emission.volume_gb, STORES["azure"])
        return [f"export AZCOPY_CONCURRENCY_VALUE={lane.connections}", f"part=${{PART:-{part}}}"]

    flags = '--recursive --as-subdir=false --block-size-mb "$part" "$@"\n'
    return upload(
        emission,
        "An upload with AzCopy",
        settings,
        'azcopy copy "$SOURCE" "$DESTINATION" \\\n  ' + flags,
        'azcopy copy "$folder" "$DESTINATION" --list-of-files "$list" \\\n  ' + flags,
        "https://account.blob.core.windows.net/container with its SAS",
        (PART_NOTE,),
    )


def gcloud(emission: Emission) -> str:
    """Return a script for ``gcloud storage``.

    Source of the settings: the properties of ``gcloud topic configurations`` in section
    ``storage`` (Google Cloud SDK 528.0.0), each of which has an environment variable.
    """
    _must_be_store(emission, "gcp", "gcloud", "Google Cloud Storage")

    def settings(lane: Lane) -> list[str]:
        threads, processes = side_by_side(lane.connections)
        part = part_mib(lane, emission.volume_gb, STORES["gcp"])
        composite = "export CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD"
        return [
            f"export CLOUDSDK_STORAGE_PROCESS_COUNT={processes}",
            f"export CLOUDSDK_STORAGE_THREAD_COUNT={threads}",
            f"part=${{PART:-{part}Mi}}",
            f"{composite}_ENABLED=True",
            f'{composite}_THRESHOLD="$part"',
            f'{composite}_COMPONENT_SIZE="$part"',
        ]

    return upload(
        emission,
        "An upload with gcloud storage",
        settings,
        'gcloud storage cp --recursive "$SOURCE/*" "$DESTINATION" "$@"\n',
        _LINKED + 'gcloud storage cp --recursive "$share/*" "$DESTINATION" "$@"\n',
        "gs://bucket/path/",
        (PART_NOTE,),
    )


# A folder of links to the lane's files, for tools that take no list.
_LINKED = """\
share=$temporary/share
mkdir "$share"
while IFS= read -r file; do
  mkdir -p "$share/$(dirname "./$file")"
  ln -s "$folder/$file" "$share/$file"
done < "$list"
"""


def _must_be_store(emission: Emission, provider: str, tool: str, store: str) -> None:
    dst = emission.destinations[0].region
    if dst.partition(":")[0] != provider:
        raise InputError(
            "emit",
            f"is {tool}, which uploads to {store}, and the plan ends in {dst}",
            remedy="`--emit rclone` uploads to any store.",
        )

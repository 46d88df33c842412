"""``relayd catalogue update``: the providers' own price lists of today."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path

from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from relayd.catalogue.documents.formats import read_prices
from relayd.catalogue.downloading import Downloads, session
from relayd.catalogue.feeds import FEEDS
from relayd.catalogue.overlays import overlay_folder
from relayd.cli.catalogue.changing import lay
from relayd.cli.text import redrawn

_MOST_BYTES = 8 * 2**30


def run(options: argparse.Namespace) -> int:
    """Download price lists and lay them over the catalogue."""
    with_key = [name for name, feed in FEEDS.items() if not feed.key or os.environ.get(feed.key)]
    providers = list(dict.fromkeys(options.provider)) or with_key
    if unknown := [name for name in providers if name not in FEEDS]:
        remedy = f"Known are {', '.join(FEEDS)}; import lists of others from files."
        raise InputError("--provider", "publishes no list", value=unknown[0], remedy=remedy)
    for name in providers:
        if not os.environ.get(FEEDS[name].key, "").isprintable():
            raise InputError(FEEDS[name].key, "is no key: it has characters that keys have not")
    if locked := [name for name in providers if name not in with_key]:
        remedy = f"Set {FEEDS[locked[0]].key} to a key for its API, or import a file."
        raise InputError("--provider", "needs a key", value=locked[0], remedy=remedy)
    if options.url and len(providers) > 1:
        remedy = "Say --provider, too."
        raise InputError("--url", "is of one provider", value=options.url, remedy=remedy)
    regions: dict[str, list[str]] = {name: [] for name in providers}
    for region in options.region:
        provider, _, name = region.partition(":")
        if provider not in regions or not name:
            remedy = f"Write it such as {providers[0]}:NAME."
            raise InputError("--region", "is of no provider asked", value=region, remedy=remedy)
        regions[provider].append(name)
    until_s = time.monotonic() + parse_duration_s(options.timeout, "--timeout")
    try:
        files = asyncio.run(_fetched(regions, options.url, until_s))
    except OSError as error:
        problem = f"can't be written ({error.strerror})"
        remedy = "Free some space or make it writable; nothing has changed."
        raise InputError(str(overlay_folder()), problem, remedy=remedy) from None
    lay(read_prices(files), options)
    if "aws" in regions and not regions["aws"]:
        print(
            "VM prices of AWS are some hundred MB a region: name regions, such as --region "
            "aws:us-east-1, to renew them too.",
            file=sys.stderr,
        )
    return 0


async def _fetched(regions: dict[str, list[str]], url: str | None, until_s: float) -> list[Path]:
    files: list[Path] = []
    for provider, names in regions.items():
        feed = FEEDS[provider]
        # Not in the address, which is kept and shown.
        headers = {"X-Goog-Api-Key": os.environ[feed.key]} if feed.key else {}
        async with session(headers) as asking:
            downloads = Downloads(
                overlay_folder() / "downloads" / provider,
                url or feed.base,
                asking,
                most_bytes=_MOST_BYTES,
                until_s=until_s,
                progress=partial(_tell, provider),
            )
            files += await feed.fetch(downloads, names)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return files


def _tell(provider: str, words: str) -> None:
    if sys.stderr.isatty():
        print(redrawn(f"{provider}: {words}"), end="", file=sys.stderr, flush=True)

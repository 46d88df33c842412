"""``relayd data catalogue update``: the providers' own price lists of today."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from planner.model.errors import InputError
from planner.model.units import parse_duration_s
from relayd.catalogue.documents.formats import read_prices
from relayd.catalogue.downloading import FEEDS, Downloads, session
from relayd.catalogue.overlays import overlay_folder
from relayd.cli.catalogue.changing import lay
from relayd.cli.text import Progress

_MOST_BYTES = 8 * 2**30


def run(options: argparse.Namespace) -> int:
    """Download price lists and lay them over the catalogue."""
    regions = _asked(options)
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


def _asked(options: argparse.Namespace) -> dict[str, list[str]]:
    """Return the providers to ask, with the regions whose VM prices are wanted."""

    def refuse(field: str, problem: str, value: str, remedy: str) -> NoReturn:
        raise InputError(field, problem, value=value, remedy=remedy)

    with_key = [name for name, feed in FEEDS.items() if not feed.key or os.environ.get(feed.key)]
    regions: dict[str, list[str]] = {name: [] for name in options.provider or with_key}
    for name in regions:
        if name not in FEEDS:
            remedy = f"Known are {', '.join(FEEDS)}; import lists of others from files."
            refuse("--provider", "publishes no list", name, remedy)
        key = FEEDS[name].key
        if not os.environ.get(key, "").isprintable():
            raise InputError(key, "is no key: it has characters that keys have not")
        if name not in with_key:
            remedy = f"Set {key} to a key for its API, or import a file."
            refuse("--provider", "needs a key", name, remedy)
    if options.url and len(regions) > 1:
        refuse("--url", "is of one provider", options.url, "Say --provider, too.")
    for region in options.region:
        provider, _, name = region.partition(":")
        if provider not in regions or not name:
            remedy = f"Write it such as {next(iter(regions))}:NAME."
            refuse("--region", "is of no provider asked", region, remedy)
        regions[provider].append(name)
    return regions


async def _fetched(regions: dict[str, list[str]], url: str | None, until_s: float) -> list[Path]:
    files: list[Path] = []
    shown = Progress()
    for provider, names in regions.items():
        feed = FEEDS[provider]
        # Not in the address, which is kept and shown.
        headers = {"X-Goog-Api-Key": os.environ[feed.key]} if feed.key else {}

        def progress(words: str, provider: str = provider) -> None:
            shown.show(f"{provider}: {words}")

        async with session(headers) as asking:
            downloads = Downloads(
                overlay_folder() / "downloads" / provider,
                url or feed.base,
                asking,
                most_bytes=_MOST_BYTES,
                until_s=until_s,
                progress=progress,
            )
            files += await feed.fetch(downloads, names)
    shown.end()
    return files

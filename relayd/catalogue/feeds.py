"""Where the providers publish prices, and which of their documents are needed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp

from planner.model.errors import DataError, FormatError
from relayd.catalogue.downloading import Downloads

_MOST_PAGES = 3000
_AZURE = "/api/retail/prices?currencyCode=USD&$filter="
_AZURE_FILTERS = (
    "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'",
    "serviceName eq 'Bandwidth' and priceType eq 'Consumption'",
)
_AWS_INDEX = "/offers/v1.0/aws/index.json"


class Feed(NamedTuple):
    """What a provider publishes.

    Attributes
    ----------
    base : str
    fetch : callable
        Fetches documents for some regions, and returns their files.
    """

    base: str
    fetch: Callable[[Downloads, aiohttp.ClientSession, Sequence[str]], Awaitable[list[Path]]]


async def fetch_azure(
    downloads: Downloads, session: aiohttp.ClientSession, regions: Sequence[str]
) -> list[Path]:
    """Fetch the pages of VMs and traffic, each of which names the next.

    Raises
    ------
    FormatError
        If a page is none, or pages lead in a circle.
    """
    files = []
    for words in _AZURE_FILTERS:
        for region in regions or ("",):
            of_region = f" and armRegionName eq '{region}'" if region else ""
            files += await _pages(downloads, session, _AZURE + quote(words + of_region))
    return files


async def _pages(
    downloads: Downloads, session: aiohttp.ClientSession, address: str | None
) -> list[Path]:
    files: list[Path] = []
    seen = set()
    while address:
        if address in seen:
            raise FormatError(address[:200], "leads back to a page that was read")
        if len(files) >= _MOST_PAGES:
            raise FormatError(address[:200], f"is page {_MOST_PAGES:,} of a list without an end")
        seen.add(address)
        file = await downloads.fetch(session, address, ".json")
        files.append(file)
        after = _json(file).get("NextPageLink")
        address = after if isinstance(after, str) else None
    return files


async def fetch_aws(
    downloads: Downloads, session: aiohttp.ClientSession, regions: Sequence[str]
) -> list[Path]:
    """Fetch the list of traffic, and of the regions that are named those of EC2.

    Raises
    ------
    FormatError
        If an index is none.
    DataError
        If EC2 has no list for a region.
    """
    index = _json(await downloads.fetch(session, _AWS_INDEX, ".json"))
    traffic = _path(index, "offers", "AWSDataTransfer", "currentVersionUrl")
    files = [await downloads.fetch(session, _as_csv(traffic), ".csv")]
    if regions:
        address = _path(index, "offers", "AmazonEC2", "currentRegionIndexUrl")
        of_region = _json(await downloads.fetch(session, address, ".json"))
        known = of_region.get("regions", {})
        if missing := [region for region in regions if region not in known]:
            raise DataError(f"AWS lists no prices of EC2 in {', '.join(missing)}.")
        for region in regions:
            address = _path(of_region, "regions", region, "currentVersionUrl")
            files.append(await downloads.fetch(session, _as_csv(address), ".csv"))
    return files


def _as_csv(address: str) -> str:
    """Return the address of the same list as a table, which can be read row by row."""
    return f"{address.removesuffix('.json')}.csv"


def _path(document: Any, *keys: str) -> str:
    """Return the path that an index names, of its own server."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    if not isinstance(document, str) or not document.startswith("/"):
        problem = "is missing in an index of AWS"
        raise FormatError(".".join(keys), problem, remedy="Try again later.")
    return document


def _json(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        file.unlink()
        remedy = "Try again: it was deleted."
        raise FormatError(str(file), "was fetched and is not a JSON object", remedy=remedy)
    return found


FEEDS = {
    "azure": Feed("https://prices.azure.com", fetch_azure),
    "aws": Feed("https://pricing.us-east-1.amazonaws.com", fetch_aws),
}

"""Where the providers publish prices, and which of their documents are needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from planner.fields.json_text import read_json
from planner.model.errors import DataError, FormatError
from relayd.catalogue.downloading import Downloads

_AZURE = "/api/retail/prices?currencyCode=USD&$filter="
_AZURE_FILTERS = (
    "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'",
    "serviceName eq 'Bandwidth' and priceType eq 'Consumption'",
)
_GOOGLE = "/v1/services/6F81-5844-456A/skus?currencyCode=USD&pageSize=5000"
_AWS_INDEX = "/offers/v1.0/aws/index.json"


class Feed(NamedTuple):
    """A provider's published prices."""

    base: str
    # Fetches documents for some regions, and returns their files
    fetch: Callable[[Downloads, Sequence[str]], Awaitable[list[Path]]]
    # The variable of the environment with the key that it wants; an empty text if it wants
    # none
    key: str = ""


async def fetch_azure(downloads: Downloads, regions: Sequence[str]) -> list[Path]:
    """Fetch the pages of VMs and traffic, each of which names the next.

    Raises FormatError if a page is none, or pages lead in a circle.
    """
    files = []
    for words in _AZURE_FILTERS:
        for region in regions or ("",):
            of_region = f" and armRegionName eq '{region}'" if region else ""
            address = _AZURE + quote(words + of_region)
            files += await _pages(downloads, address, lambda page: page.get("NextPageLink"))
    return files


async def _pages(
    downloads: Downloads, address: str, following: Callable[[dict[str, Any]], object]
) -> list[Path]:
    files: dict[str, Path] = {}
    after: object = address
    while after and isinstance(after, str):
        if after in files:
            raise FormatError(after[:200], "leads back to a page that was read")
        files[after] = await downloads.fetch(after, ".json")
        after = following(_json(files[after]))
    return list(files.values())


async def fetch_aws(downloads: Downloads, regions: Sequence[str]) -> list[Path]:
    """Fetch the list of traffic, and of the regions that are named those of EC2.

    If EC2 has no list for a region, that is a DataError.
    """
    index = _json(await downloads.fetch(_AWS_INDEX, ".json"))
    addresses = [_path(index, "offers", "AWSDataTransfer", "currentVersionUrl")]
    if regions:
        address = _path(index, "offers", "AmazonEC2", "currentRegionIndexUrl")
        of_region = _json(await downloads.fetch(address, ".json"))
        known = of_region.get("regions", {})
        if missing := [region for region in regions if region not in known]:
            raise DataError(f"AWS lists no prices of EC2 in {', '.join(missing)}.")
        addresses += [_path(of_region, "regions", name, "currentVersionUrl") for name in regions]
    # The same lists as tables, which can be read row by row.
    tables = [f"{address.removesuffix('.json')}.csv" for address in addresses]
    return [await downloads.fetch(table, ".csv") for table in tables]


async def fetch_google(downloads: Downloads, regions: Sequence[str]) -> list[Path]:  # noqa: ARG001
    """Fetch the SKUs of Compute Engine, which are those of all regions.

    Raises FormatError if a page is none, or pages lead in a circle.
    """

    def following(page: dict[str, Any]) -> str | None:
        token = page.get("nextPageToken")
        return f"{_GOOGLE}&pageToken={quote(token)}" if token and isinstance(token, str) else None

    return await _pages(downloads, _GOOGLE, following)


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
        found = read_json(file.read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict):
        file.unlink()
        remedy = "Try again: it was deleted."
        raise FormatError(str(file), "was fetched and is not a JSON object", remedy=remedy)
    return found


FEEDS = {
    "azure": Feed("https://prices.azure.com", fetch_azure),
    "aws": Feed("https://pricing.us-east-1.amazonaws.com", fetch_aws),
    "gcp": Feed("https://cloudbilling.googleapis.com", fetch_google, "RELAYD_GOOGLE_API_KEY"),
}

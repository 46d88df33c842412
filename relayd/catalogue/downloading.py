"""Downloads what the providers publish of prices, by HTTP.

Requests are conditional, and size and time are limited.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import aiohttp

from planner.fields.json_text import read_json
from planner.model.errors import DataError, FormatError, InputError
from relayd.version import __version__

MOST_FILE_BYTES = 2 * 2**30
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.2
_SILENCE_S = 60.0  # without a byte
_CHUNK_BYTES = 2**18
_UNCHANGED, _TOO_MANY = 304, 429


class Downloads:
    """Files of one origin, kept in a folder with what identifies their version.

    A file that was fetched before is asked for under the condition that it has changed; one that
    breaks off is fetched again from its start, a few times.

    All documents must be of the address `base`: no link leads elsewhere. `most_bytes` is of all
    files together, `until_s` on the monotonic clock; `progress` is called with a line of text now
    and then.
    """

    def __init__(
        self,
        folder: Path,
        base: str,
        session: aiohttp.ClientSession,
        *,
        most_bytes: int,
        until_s: float,
        progress: Callable[[str], None],
    ) -> None:
        self._folder = folder
        parts = urlsplit(base)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            remedy = "Write it such as https://prices.azure.com."
            raise InputError("--url", "is not an address of HTTP", value=base, remedy=remedy)
        self.base = base.rstrip("/")
        self._session = session
        self._left_bytes = most_bytes
        self._until_s = until_s
        self._progress = progress
        self._files = 0
        self._bytes = 0
        folder.mkdir(parents=True, exist_ok=True)

    async def fetch(self, address: str, suffix: str) -> Path:
        """Return the file of an address, fetched again if it has changed.

        Raises DataError if the server does not answer, breaks off, or a limit is reached;
        InputError if the address is of another origin.
        """
        url = f"{self.base}{address}" if address.startswith("/") else address
        if _origin(url) != _origin(self.base):
            remedy = f"Documents are fetched from {self.base} alone; --url names another."
            raise InputError("update", "was led to another server", value=url[:200], remedy=remedy)
        name = blake2b(url.encode(), digest_size=10).hexdigest()
        file = self._folder / f"{name}{suffix}"
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_FIRST_PAUSE_S * 4**attempt)
            if time.monotonic() > self._until_s:
                raise DataError(f"{url} was not fetched: the time is up. {_KEPT}")
            try:
                await self._attempt(url, file)
                self._files += 1
                self._tell()
                return file
            except (aiohttp.ClientError, TimeoutError) as error:
                problem = str(error) or type(error).__name__
        raise DataError(f"{url} could not be fetched: {problem[:200]}. {_KEPT}")

    async def _attempt(self, url: str, file: Path) -> None:
        known = _version(file) if file.exists() else {}
        headers = {"User-Agent": f"relayd/{__version__}"}
        headers |= {"If-None-Match": known["etag"]} if known.get("etag") else {}
        headers |= {"If-Modified-Since": known["date"]} if known.get("date") else {}
        async with self._session.get(url, headers=headers, allow_redirects=False) as answer:
            if answer.status == _UNCHANGED and file.exists():
                os.utime(file)  # these are the prices of today
                return
            if answer.status == _TOO_MANY or answer.status >= 500:
                raise aiohttp.ClientPayloadError(f"it answers {answer.status}")
            if answer.status != 200:
                raise DataError(f"{url} could not be fetched: it answers {answer.status}. {_KEPT}")
            part, size = file.with_suffix(".part"), 0
            with part.open("wb") as written:
                async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                    size += len(chunk)
                    self._count(url, size, len(chunk))
                    written.write(chunk)
        part.replace(file)
        version = {
            "url": url,
            "etag": answer.headers.get("ETag", ""),
            "date": answer.headers.get("Last-Modified", ""),
        }
        _side(file).write_text(json.dumps(version))

    def _count(self, url: str, of_file: int, more: int) -> None:
        self._left_bytes -= more
        self._bytes += more
        if of_file > MOST_FILE_BYTES or self._left_bytes < 0:
            raise DataError(f"{url} was not fetched: it is too large. {_KEPT}")
        if self._bytes >> 24 != (self._bytes - more) >> 24:  # every 16 MiB
            self._tell()
        if time.monotonic() > self._until_s:
            raise DataError(f"{url} was not fetched in full: the time is up. {_KEPT}")

    def _tell(self) -> None:
        self._progress(f"{self._files:,} files, {self._bytes / 1e6:,.1f} MB")


_KEPT = "Nothing has changed; what was fetched is kept for the next time."


def session(headers: Mapping[str, str]) -> aiohttp.ClientSession:
    """Return a session with limits on silence, whose requests all have these headers."""
    silence = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
    return aiohttp.ClientSession(timeout=silence, headers=headers)


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"https": 443}.get(parts.scheme, 80)


def _side(file: Path) -> Path:
    return file.with_name(f"{file.name}.version")


def _version(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found = json.loads(_side(file).read_text())
        if isinstance(found, dict):
            return found
    return {}


# ---- the providers' documents: where they are, and which are needed ------------------------------

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

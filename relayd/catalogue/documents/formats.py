"""The formats of price documents: how each is recognised, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from planner.model.errors import FormatError
from relayd.catalogue.documents import aws_offers, azure_retail, google_skus, quotas, skypilot
from relayd.catalogue.documents.opening import PriceDocument, files_of
from relayd.catalogue.documents.price_list import PriceList


class PriceFormat(NamedTuple):
    """A format; ``name`` ends up in the names of overlays."""

    name: str
    title: str
    recognises: Callable[[PriceDocument], bool]
    read: Callable[[PriceDocument, PriceList], None]


def _has(*keys: str) -> Callable[[PriceDocument], bool]:
    """Recognise a JSON object with some keys, or a list of such objects by the first."""

    def recognises(document: PriceDocument) -> bool:
        found = document.json
        first = found[0] if isinstance(found, list) and found else found
        return isinstance(first, dict) and first.keys() >= set(keys)

    return recognises


FORMATS = (
    PriceFormat("skypilot", "SkyPilot's catalogue", skypilot.recognises, skypilot.read),
    PriceFormat("aws-offers", "AWS price lists", aws_offers.recognises, aws_offers.read),
    PriceFormat(
        "azure-retail", "Azure Retail Prices", _has("Items", "BillingCurrency"), azure_retail.read
    ),
    PriceFormat("aws-quotas", "AWS Service Quotas", _has("Quotas"), quotas.read_aws),
    PriceFormat("azure-usage", "Azure's VM usage", _has("currentValue"), quotas.read_azure),
    PriceFormat("gcp-regions", "Google Cloud's regions", _has("quotas", "name"), quotas.read_gcp),
    PriceFormat("google-skus", "Google Cloud SKUs", _has("skus"), google_skus.read),
)


class Reading(NamedTuple):
    """Prices, and the files that they were read from.

    Attributes
    ----------
    prices : PriceList
    files : dict
        Each file's path to the format that it was recognised as.
    """

    prices: PriceList
    files: dict[Path, PriceFormat]

    @property
    def name(self) -> str:
        """A word for all the formats."""
        return "-".join(sorted({one.name for one in self.files.values()}))[:60]

    @property
    def title(self) -> str:
        """All the formats, for people."""
        return " and ".join(dict.fromkeys(one.title for one in self.files.values()))


def read_prices(paths: Iterable[Path]) -> Reading:
    """Read all price documents of some files and folders.

    A FormatError names the first file that is of no known format or damaged, or says that there is
    no price in any.
    """
    reading = Reading(PriceList(), {})
    for path in dict.fromkeys(file for named in paths for file in files_of(named)):
        document = PriceDocument(path)
        found = next((one for one in FORMATS if one.recognises(document)), None)
        if found is None:
            known = ", ".join(one.title for one in FORMATS)
            remedy = f"Known are {known}; docs/catalogue.md says how they look."
            raise FormatError(str(path), "is of no format that is known", remedy=remedy)
        found.read(document, reading.prices)
        reading.prices.as_of = max(reading.prices.as_of, document.modified_on)
        reading.files[path] = found
    if reading.prices.is_empty:
        places = ", ".join(str(path) for path in reading.files)[:200]
        why = "; ".join(f"{n} {reason}" for reason, n in reading.prices.left_out.items())
        raise FormatError(places, f"has no price to use ({why or 'it is empty'})")
    return reading

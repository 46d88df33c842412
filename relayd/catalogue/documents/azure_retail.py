"""Azure Retail Prices pages: ``{"BillingCurrency": ..., "Items": [...], "NextPageLink": ...}``.

Fields as in https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
Of VMs, what a Linux VM costs on demand is read; of traffic, the meter to the internet over
Microsoft's own network (product ``Rtn Preference: MGN``), which is what a VM uses unless told
otherwise. Meters between regions do not say between which, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.model.errors import FormatError
from relayd.catalogue.documents.opening import PriceDocument, text_of
from relayd.catalogue.documents.price_list import INTERNET, PriceList, must_be_usd, price_of

_OTHER_VMS = ("windows", "cloud services", "dedicated host", "spot", "low priority")
_EGRESS = ("rtn preference: mgn", "standard data transfer out")
_HOURS = {"1 Hour": 1.0, "10 Hours": 10.0, "100 Hours": 100.0}
_GBS = {"1 GB": 1.0, "10 GB": 10.0, "100 GB": 100.0}


def recognises(document: PriceDocument) -> bool:
    """Whether it is a page of Azure's prices."""
    page = document.json
    return isinstance(page, dict) and "Items" in page and "BillingCurrency" in page


def read(document: PriceDocument) -> PriceList:
    """Read a page.

    Raises
    ------
    FormatError
        If it is not in USD, or an item's price or unit can't be.
    """
    page = document.json
    must_be_usd(str(document.path), page["BillingCurrency"])
    found = PriceList(as_of=document.modified_on)
    for place, item in _items(document, page["Items"]):
        product, meter = (text_of(place, item, name) for name in ("productName", "meterName"))
        region = text_of(place, item, "armRegionName")
        service = text_of(place, item, "serviceName")
        if text_of(place, item, "type") not in {"Consumption", ""}:
            found.left_out["reservations and the like"] += 1
        elif service == "Virtual Machines":
            name = text_of(place, item, "armSkuName").removeprefix("Standard_")
            words = f"{product} {text_of(place, item, 'skuName')} {meter}".casefold()
            if not name or not region or any(other in words for other in _OTHER_VMS):
                found.left_out["VMs that are not Linux on demand"] += 1
                continue
            must_be_usd(place, item.get("currencyCode"))
            usd = price_of(place, item.get("retailPrice")) / _units(place, item, _HOURS)
            found.add_vm(place, f"azure:{name}", f"azure:{region}", usd)
        elif (
            service == "Bandwidth" and region and (product.casefold(), meter.casefold()) == _EGRESS
        ):
            must_be_usd(place, item.get("currencyCode"))
            units = _units(place, item, _GBS)
            usd = price_of(place, item.get("retailPrice")) / units
            start = item.get("tierMinimumUnits", 0)
            from_gb = units * price_of(place, start, most=1e12, what="tierMinimumUnits")
            found.add_traffic(f"azure:{region}", INTERNET, from_gb, usd)
        else:
            found.left_out["other meters"] += 1
    return found


def _items(document: PriceDocument, items: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(items, list):
        raise FormatError(str(document.path), "has Items that are no list", value=type(items))
    for number, item in enumerate(items, 1):
        place = f"{document.path}, item {number}"
        if not isinstance(item, dict):
            raise FormatError(place, "must be an object", value=item)
        yield place, item


def _units(place: str, item: dict[str, Any], known: dict[str, float]) -> float:
    unit = text_of(place, item, "unitOfMeasure")
    if unit not in known:
        remedy = f"Known are {', '.join(known)}."
        raise FormatError(place, "has a unit that is not known", value=unit, remedy=remedy)
    return known[unit]

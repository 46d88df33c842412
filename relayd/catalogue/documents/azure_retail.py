"""Azure Retail Prices pages: ``{"BillingCurrency": ..., "Items": [...], "NextPageLink": ...}``.

Fields as in https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
Of VMs, what a Linux VM costs on demand is read; of traffic, the meter to the internet over
Microsoft's own network (product ``Rtn Preference: MGN``), which is what a VM uses unless told
otherwise. Meters between regions do not say between which, and stay as they are.
"""

from __future__ import annotations

from relayd.catalogue.documents.opening import MOST_GB, DocumentRow, PriceDocument, items_of
from relayd.catalogue.documents.price_list import INTERNET, PriceList

_OTHER_VMS = ("windows", "cloud services", "dedicated host", "spot", "low priority")
_EGRESS = ("rtn preference: mgn", "standard data transfer out")
_HOURS = ("1 Hour", "10 Hours", "100 Hours")
_GB = ("1 GB", "10 GB", "100 GB")


def read(document: PriceDocument, found: PriceList) -> None:
    """Read a page; a FormatError if it is not in USD, or an item's price or unit is invalid."""
    DocumentRow(str(document.path), document.json).check_usd("BillingCurrency")
    for row in items_of(str(document.path), document.json["Items"]):
        region, service = row.text("armRegionName"), row.text("serviceName")
        meter = (row.text("productName").casefold(), row.text("meterName").casefold())
        if row.text("type") not in {"Consumption", ""}:
            found.left_out["reservations and the like"] += 1
        elif service == "Virtual Machines":
            name = row.text("armSkuName").removeprefix("Standard_")
            words = f"{row.text('skuName').casefold()} {' '.join(meter)}"
            if not name or not region or any(other in words for other in _OTHER_VMS):
                found.left_out["VMs that are not Linux on demand"] += 1
                continue
            usd, hours = _price(row, _HOURS)
            found.add_vm(row.place, f"azure:{name}", f"azure:{region}", usd / hours)
        elif service == "Bandwidth" and region and meter == _EGRESS:
            usd, gb = _price(row, _GB)
            from_gb = gb * row.figure("tierMinimumUnits", most=MOST_GB, default=0.0)
            found.add_traffic(f"azure:{region}", INTERNET, from_gb, usd / gb)
        else:
            found.left_out["other meters"] += 1


def _price(row: DocumentRow, units: tuple[str, ...]) -> tuple[float, int]:
    """Return USD for so many units."""
    row.check_usd("currencyCode")
    unit = row.one_of("unitOfMeasure", words=units)
    return row.figure("retailPrice"), int(unit.partition(" ")[0])

"""Azure Retail Prices pages: ``{"BillingCurrency": ..., "Items": [...], "NextPageLink": ...}``.

Fields as in https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
Of VMs, what a Linux VM costs on demand is read; of traffic, the meter to the internet over
Microsoft's own network (product ``Rtn Preference: MGN``), which is what a VM uses unless told
otherwise. Meters between regions do not say between which, and stay as they are.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from relayd.catalogue.documents.opening import (
    DocumentRow,
    Dollars,
    PriceDocument,
    Text,
    Usd,
    Volume,
    checked,
    items_of,
)
from relayd.catalogue.documents.price_list import INTERNET, PriceList

_OTHER_VMS = ("windows", "cloud services", "dedicated host", "spot", "low priority")
_EGRESS = ("rtn preference: mgn", "standard data transfer out")


class _Page(DocumentRow):
    billing_currency: Dollars = Field(alias="BillingCurrency")


class _Item(DocumentRow):
    type: Text = ""
    service_name: Text = ""
    product_name: Text = ""
    meter_name: Text = ""
    sku_name: Text = ""
    arm_sku_name: Text = ""
    arm_region_name: Text = ""


class _VmPrice(DocumentRow):
    currency_code: Dollars
    retail_price: Usd
    unit_of_measure: Annotated[
        str,
        Field(pattern=r"^10{0,2} Hours?$", description="Known are 1 Hour, 10 Hours and 100 Hours."),
    ]

    @property
    def units(self) -> int:
        return int(self.unit_of_measure.partition(" ")[0])


class _TrafficPrice(_VmPrice):
    unit_of_measure: Annotated[
        str, Field(pattern=r"^10{0,2} GB$", description="Known are 1 GB, 10 GB and 100 GB.")
    ]
    tier_minimum_units: Volume = 0.0


def recognises(document: PriceDocument) -> bool:
    """Whether it is a page of Azure's prices."""
    page = document.json
    return isinstance(page, dict) and "Items" in page and "BillingCurrency" in page


def read(document: PriceDocument, found: PriceList) -> None:
    """Read a page; a FormatError if it is not in USD, or an item's price or unit is invalid."""
    checked(_Page, str(document.path), document.json)
    for place, row in items_of(str(document.path), document.json["Items"]):
        item = checked(_Item, place, row)
        region = item.arm_region_name
        meter = (item.product_name.casefold(), item.meter_name.casefold())
        if item.type not in {"Consumption", ""}:
            found.left_out["reservations and the like"] += 1
        elif item.service_name == "Virtual Machines":
            name = item.arm_sku_name.removeprefix("Standard_")
            words = f"{item.sku_name.casefold()} {' '.join(meter)}"
            if not name or not region or any(other in words for other in _OTHER_VMS):
                found.left_out["VMs that are not Linux on demand"] += 1
                continue
            vm = checked(_VmPrice, place, row)
            found.add_vm(place, f"azure:{name}", f"azure:{region}", vm.retail_price / vm.units)
        elif item.service_name == "Bandwidth" and region and meter == _EGRESS:
            gb = checked(_TrafficPrice, place, row)
            from_gb = gb.units * gb.tier_minimum_units
            found.add_traffic(f"azure:{region}", INTERNET, from_gb, gb.retail_price / gb.units)
        else:
            found.left_out["other meters"] += 1

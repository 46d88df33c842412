"""Documents that are damaged, foreign or made to harm: one clear sentence, nothing changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path

import pytest

from tests.relayd.catalogue.conftest import Commands
from tests.relayd.catalogue.documents import (
    HEAD,
    STANDARD,
    aws_as_json,
    aws_quotas,
    aws_vm_table,
    azure_page,
    azure_traffic,
    azure_usages,
    azure_vm,
    gcp_quotas,
    google_sku,
)
from tests.relayd.conftest import Relayd

Make = Callable[[Path], Path]


def table(*rows: str, head: str = ",".join(HEAD)) -> Make:
    def make(folder: Path) -> Path:
        (folder / "aws").mkdir()
        (folder / "aws" / "vms.csv").write_text("\n".join([head, *rows]))
        return folder

    return make


def row(name: str = "m5.large", price: str = "0.1", region: str = "us-east-1") -> str:
    return f"{name},,,2.0,8.0,,{price},0.03,{region},{region}a"


def page(*items: dict[str, object], **other: object) -> Make:
    return document({**azure_page(items), **other})


def document(content: object, name: str = "page.json") -> Make:
    return raw(json.dumps(content).encode(), name)


def raw(content: bytes, name: str = "page.json") -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def symlinks_in_a_circle(folder: Path) -> Path:
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    return folder / "a"


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def huge(folder: Path) -> Path:
    with (folder / "huge.json").open("wb") as file:
        file.write(b"{")
        file.truncate(300 * 2**20)  # no block of it is on the disk
    return folder / "huge.json"


def changed_vms(old: bytes, new: bytes) -> Make:
    return raw(aws_vm_table([AWS_VM]).replace(old, new), "ec2.csv")


def skus(*items: object) -> Make:
    return document({"skus": items})


def quotas(*quotas: tuple[str, str, object], **more: str) -> Make:
    return document(aws_quotas(*quotas, **more))


AWS_VM = ("m5.large", "us-east-1", 0.1)
VM = azure_vm("D32_v5", "eastus", 1.0)
CORE = google_sku("N2 Instance Core", "us-east1", 1, usageUnit="mo")
RAM = google_sku("E2 Instance Ram", "us-east1", 1)
QUOTA = ("L-1216C47A", STANDARD, 8.0)
CORES = azure_usages(("cores", 1, 10))
HOSTILE: dict[str, tuple[Make, str]] = {
    "negative": (table(row(price="-0.1")), "row 2 has an invalid Price"),
    "not a number": (table(row(price="nan")), "has an invalid Price"),
    "text for a price": (table(row(price="=1+1")), "has an invalid Price (got '=1+1')"),
    "a formula for a name": (table(row(name="=cmd|'/C calc'!A0")), "has an odd name of a VM type"),
    "control characters": (table(row(region="\x1b[2Jeast")), "has an odd name of a region"),
    "missing column": (table("m5.large,0.1", head="InstanceType,Price"), "lacks the column Region"),
    "short row": (table("m5.large,0.1"), "row 2 has 2 columns where the head has 10"),
    "empty": (table(), "has no price to use (it is empty)"),
    "no provider": (raw(",".join(HEAD).encode(), "vms.csv"), "does not say of which provider"),
    "currency": (page(VM, BillingCurrency="EUR"), "has an invalid BillingCurrency (got 'EUR')"),
    "unit of hours": (page({**VM, "unitOfMeasure": "1 Fortnight"}), "has an invalid unitOfMeasure"),
    "no price": (page({**VM, "retailPrice": None}), "has an invalid retailPrice"),
    "too dear": (page({**VM, "retailPrice": 1e300}), "has an invalid retailPrice"),
    "an odd tier": (page(azure_traffic("eastus", -5, 0.1)), "has an invalid tierMinimumUnits"),
    "an item of a list": (page(["D32_v5"]), "item 1 must be an object"),  # type: ignore[arg-type]
    "items of text": (page(Items="all"), "must be a list (got 'all')"),
    "nothing of use": (page({**VM, "type": "Reservation"}), "has no price to use (1 reservations"),
    "another service": (changed_vms(b"AmazonEC2", b"AmazonRDS"), "has an invalid OfferCode"),
    "yuan": (changed_vms(b"USD", b"CNY"), "an invalid currency (got 'CNY'). relayd counts in US"),
    "no columns": (changed_vms(b'"Currency"', b'"Money"'), "lacks the column Currency"),
    "odd terms": (
        document({**aws_as_json(aws_vm_table([AWS_VM])), "products": []}),
        "has products or terms that are not as AWS describes them",
    ),
    "a unit of Google": (skus(CORE), "has an invalid usageUnit (got 'mo')"),
    "odd prices": (skus({**RAM, "pricingInfo": []}), "lacks the pricingInfo.0.pricingExpression"),
    "half of a file": (raw(json.dumps(azure_page([VM])).encode()[:-9]), "is not JSON"),
    "nested deeply": (raw(b"[" * 100_000), "nests too deep"),
    "an archive": (raw(b"PK\x03\x04\xff\xfe\x00\x00", "prices.zip"), "is not UTF-8 text"),
    "another format": (raw(b'{"hello": "world"}'), "is of no format that is known"),
    "symlinks": (symlinks_in_a_circle, "can't be read (Too many levels of symbolic links)"),
    "a pipe": (a_pipe, "is not a regular file"),
    "missing": (lambda folder: folder / "none.json", "can't be read (No such file or directory)"),
    "an empty folder": (lambda folder: folder, "is a folder without price documents"),
    "huge": (huge, "is larger than 256 MiB"),
    "a quota below 0": (quotas((*QUOTA[:2], -1)), "item 1 has an invalid Value"),
    "a quota of nothing": (quotas((*QUOTA[:2], None)), "has an invalid Value"),
    "a quota in words": (quotas((*QUOTA[:2], "many")), "has an invalid Value (got 'many')"),
    "a huge quota": (quotas((*QUOTA[:2], 10**400)), "has an invalid Value"),
    "a quota of no region": (quotas(QUOTA, arn=""), "has an odd name of a region (got 'aws:')"),
    "a quota of an odd region": (quotas(QUOTA, arn="a:b:c:\x1b[2J:"), "an odd name of a region"),
    "quotas of no list": (document({"Quotas": {"a": 1}}), "must be a list"),
    "a quota of no object": (document({"Quotas": [1]}), "item 1 must be an object (got 1)"),
    "other quotas": (quotas(("L-0263D0A3", "EC2-VPC Elastic IPs", 5)), "no price to use"),
    "a usage without a name": (
        document([{**CORES[0], "name": None}], "westeurope.json"),
        "item 1 lacks the name.value",
    ),
    "a usage of no region": (document(CORES, "usage.json"), "Name the file after its region"),
    "use of nothing": (document(gcp_quotas("us-east4", ("CPUS", 8, None))), "an invalid usage"),
}
"""How documents are damaged, and words of the refusal."""


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_in_one_sentence(
    name: str, tmp_path: Path, overlays: Path, catalogue: Commands
) -> None:
    make, words = HOSTILE[name]
    folder = tmp_path / "documents"
    folder.mkdir()
    seen = catalogue("import", make(folder), code=2)
    assert seen.out == ""
    assert words in seen.err
    assert seen.err.count("\n") == 1
    assert "\x1b" not in seen.err
    assert not overlays.exists()


def test_a_folder_that_is_none_is_said(
    tmp_path: Path, environment: MutableMapping[str, str], catalogue: Commands
) -> None:
    (tmp_path / "file").write_text("")
    environment["RELAYD_CATALOGUE_DIR"] = str(tmp_path / "file")
    folder = tmp_path / "documents"
    folder.mkdir()
    assert "can't be written" in catalogue("import", table(row())(folder), code=2).err


def test_a_damaged_overlay_is_named_and_can_be_undone(
    overlays: Path, relayd: Relayd, catalogue: Commands
) -> None:
    overlays.mkdir()
    (overlays / "0001-2026-11-22-skypilot.toml").write_text("[[vm_price]]\ntype = 5\n")
    refused = relayd("data", "vm-types", "m5.large")
    assert (refused.code, "0001-2026-11-22-skypilot.toml" in refused.err) == (2, True)
    catalogue("undo")
    assert relayd("data", "vm-types", "m5.large").code == 0

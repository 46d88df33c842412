"""The files of a catalogue: built-in tables, imported overlays and a user's own, as documents.

Tables are TOML, but for the providers' lists: CSV with an entry a row, whose head says what the
columns are.
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from planner.model.errors import CatalogueError
from relayd.catalogue.overlays import overlays_in_force

BUILT_IN = (
    "regions.toml",
    "regions-further.toml",
    "aliases.toml",
    "vm-types.csv",
    "vm-types-burstable.csv",
    "vm-types.toml",
    "vm-prices.csv",
    "egress-prices.toml",
)
_PACKAGE = Path(__file__).resolve().parents[1]
_BURSTABLE = re.compile(r"aws:t\d|azure:B\d|gcp:(f1-|g1-|e2-(micro|small|medium)$)")
"""VM types whose CPU earns credits, by families of the providers' documentation."""
Layer: TypeAlias = Literal["built-in", "overlay", "user"]


class CatalogueFile(NamedTuple):
    """A file: its name as the user spells it, and its content."""

    name: str
    content: bytes
    layer: Layer

    @property
    def is_list(self) -> bool:
        """Whether it is a provider's list, which what was measured of an entry goes before."""
        return self.layer == "built-in" and self.name.endswith(".csv")

    def document(self) -> dict[str, Any]:
        """Return tables, and lists of tables; a CatalogueError names the line at fault."""
        if self.is_list:
            return _document_of_list(self.name, self.content.decode())
        try:
            return tomllib.loads(self.content.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            number = 1 + self.content.count(b"\n", 0, error.start)
            problem = "is not UTF-8 text"
            remedy = "Save the file as UTF-8; TOML knows no other encoding."
            raise CatalogueError(f"{self.name}, line {number}", problem, remedy=remedy) from None
        except (ValueError, RecursionError) as error:
            # "Invalid value (at line 3, column 5)", or "(at end of document)"
            problem, _, place = str(error).removesuffix(")").partition(" (at ")
            line_of_error = place.partition("line ")[2].partition(",")[0]
            lines = self.content.decode("utf-8-sig").split("\n")
            line = lines[int(line_of_error) - 1].strip() if line_of_error else ""
            raise CatalogueError(
                f"{self.name}, {place}" if place else self.name,
                f"is not valid TOML: {problem[:1].lower()}{problem[1:]}",
                value=line or None,
                remedy="Text is written in quotes, lists in [ ], and a table begins with "
                "`[[region]]` or the like.",
            ) from None


def files_in_force(
    user_files: Sequence[Path] = (), overlays: Sequence[Path] | None = None
) -> list[CatalogueFile]:
    """Read all files of the catalogue, the lowest layer first; a CatalogueError if it can't."""
    folder = built_in_folder()
    imported = overlays_in_force() if overlays is None else overlays
    files = [CatalogueFile(name, _content(folder / name), "built-in") for name in BUILT_IN]
    files += [CatalogueFile(str(path), _content(path), "overlay") for path in imported]
    return files + [CatalogueFile(str(p), _content(p), "user") for p in dict.fromkeys(user_files)]


def built_in_folder() -> Path:
    """Return the folder of the built-in tables: ``configs/`` in a checkout, else in the package."""
    packaged = _PACKAGE / "_configs"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "configs"


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CatalogueError(
            str(path),
            f"can't be read ({error.strerror or error})",
            remedy="Give a catalogue file that exists and that you may read; install relayd"
            " again if it is one of its own.",
        ) from None


def _document_of_list(name: str, text: str) -> dict[str, Any]:
    lines = text.splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    if name == "vm-prices.csv":
        return {"vm_price_ratios": {row["region"]: float(row["ratio"]) for row in rows}}
    head = {
        line[2:].partition(":")[0]: line.partition(": ")[2]
        for line in lines
        if line.startswith("# source ")
    }
    return {"vm_type": [_vm_type(row, head) for row in rows]}


def _vm_type(row: Mapping[str, str], head: Mapping[str, str]) -> dict[str, Any]:
    provider = row["id"].partition(":")[0]
    network, wan = float(row["network_gbps"]), float(row["wan_gbps"])
    sustained = f"{network:g} Gbit/s {row['network_from']}"
    said = [
        f"sustained {sustained}",
        "to other clouds as documented" if wan == network else f"{wan:g} to other clouds by rule",
        "not measured",
        head[f"source {provider}"],
    ]
    entry: dict[str, Any] = {
        "id": row["id"],
        "vcpus": int(row["vcpus"]),
        "egress_gbps": wan,
        "ingress_gbps": float(row["ingress_gbps"]),
        "flow_gbps": float(row["flow_gbps"] or wan),
        "price_usd_per_h": float(row["usd_per_h"]),
        "source": "; ".join(said),
        "burstable": bool(_BURSTABLE.match(row["id"])),
        "region_egress_gbps": float(row["region_gbps"]),
        "suggested": row.get("suggested") == "1",
    }
    for name in ("burst_gbps", "tier1_gbps"):
        if row[name]:
            entry[name] = float(row[name])
    return entry

"""vCPU quotas of an account: limits on families of VM types, in each region.

Which types count against a quota follows from its name where the provider's naming tells:

- AWS, `Service Quotas` of EC2: the quota's code, or its name, lists the letters that type names
  begin with. Spot and dedicated VMs have quotas of their own.
- Azure, `az vm list-usage`: `standardDDSv5Family` is what `D32ds_v5` belongs to, and all types
  count against `cores`, the region's total.
- Google Cloud, quotas of a region: `N2_CPUS` counts the series n2, and `CPUS` the series that have
  no quota of their own. Series since C3D and N4 are counted by family elsewhere, which their
  `types` can say.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import NamedTuple

MOST_VCPUS = 10_000_000
PROVIDER_NAMES = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud"}

# Codes of EC2's quotas on running on-demand VMs, what their names say, and what the names of their
# types begin with (user guide of EC2, "On-Demand Instance quotas"; codes of Service Quotas).
_AWS = {
    "L-1216C47A": ("Standard (A, C, D, H, I, M, R, T, Z)", "a c d h i im is m r t z"),
    "L-DB2E81BA": ("G and VT", "g gr vt"),
    "L-417A185B": ("P", "p"),
    "L-74FC7D96": ("F", "f"),
    "L-7295265B": ("X", "x"),
    "L-1945791B": ("Inf", "inf"),
    "L-2C3B7624": ("Trn", "trn"),
    "L-6E869C2A": ("DL", "dl"),
    "L-F7808C92": ("HPC", "hpc"),
    "L-43DA4232": ("High Memory", "u"),
}
_AWS_CODES = {words.partition(" (")[0].lower(): code for code, (words, _) in _AWS.items()}
_AWS_PREFIXES = {code: frozenset(prefixes.split()) for code, (_, prefixes) in _AWS.items()}
# Not compiled here, so that start-up takes no longer where there are no quotas.
_AWS_CODE = r"\bL-[0-9A-F]{8}\b"
_AWS_NAME = r"running on-demand ([a-z ]+?)(?: \(.*\))? instances\b.*"
_AZURE_TOTAL = {"cores", "totalregional"}
_AZURE_FAMILY = r"(?:standard|basic)[a-z0-9_]+family"
_AZURE_TYPE = r"([A-Z]+)\d+(?:-\d+)?([a-z]*)(?:_([A-Z]+\d+))?(?:_(v\d+))?"
_GCP_SERIES = r"([A-Z]\d+[A-Z]?)_CPUS"
_GCP_SHARED = {"e2", "f1", "g1", "n1"}


# Named tuples, which take less time to define than data classes: every plan loads this.
class VcpuQuota(NamedTuple):
    """A limit on the vCPUs of some VM types, in each of some regions."""

    region: str  # a region's id, or a pattern of regions; each of them has the whole quota
    family: str  # the provider's name of it
    vcpus: int
    used_vcpus: int = 0  # what runs already
    types: tuple[str, ...] = ()
    """Ids or names of the VM types that count, with ``*`` for anything; none where the family says
    which."""
    source: str = ""  # where the figures are from, with the date
    as_of: str = ""  # the date of `used_vcpus`

    def counts(self, vm_type: str) -> bool:
        """Return whether VMs of a type, an id of the catalogue, count against the quota."""
        if not self.types:
            return family_key(self.family) in families_of(vm_type)
        name = vm_type.partition(":")[2]
        patterns = [pattern.replace("Standard_", "") for pattern in self.types]
        return any(fnmatchcase(vm_type, p) or fnmatchcase(name, p) for p in patterns)


class VmQuota(NamedTuple):
    """The VMs of a site's type that a quota leaves."""

    quota: VcpuQuota
    vm_vcpus: int  # of one VM
    running: int = 0  # VMs that a plan in progress has there, whatever the quota

    @property
    def vms(self) -> int:
        """Number of VMs that may run."""
        free = self.quota.vcpus - self.quota.used_vcpus
        return max(self.running, free // self.vm_vcpus, 0)

    def vcpus_for(self, vms: int) -> int:
        """Return the quota that a number of VMs needs."""
        return self.quota.used_vcpus + vms * self.vm_vcpus

    def __str__(self) -> str:
        """Name the quota, with its figures."""
        used = f", {self.quota.used_vcpus} of them in use" if self.quota.used_vcpus else ""
        family = self.quota.family
        if family in _AWS:
            family = f"Running On-Demand {_AWS[family][0]} instances ({family})"
        return f"quota {family} is {self.quota.vcpus} vCPUs{used}"


def family_key(family: str) -> str | None:
    """Return the key of a family, however it is written; None where its types are not known."""
    if (code := re.search(_AWS_CODE, family)) and code[0] in _AWS:
        return code[0]
    lower = family.strip().lower()
    if named := re.fullmatch(_AWS_NAME, lower):
        return _AWS_CODES.get(named[1])
    joined = lower.replace(" ", "").removesuffix("vcpus")
    if joined in _AZURE_TOTAL:
        return "cores"
    if re.fullmatch(_AZURE_FAMILY, joined):
        return joined
    upper = family.strip().upper()
    return upper if upper == "CPUS" or re.fullmatch(_GCP_SERIES, upper) else None


def families_of(vm_type: str) -> set[str]:
    """Return the keys of the families that VMs of a type, an id of the catalogue, count against."""
    provider, _, name = vm_type.partition(":")
    if provider == "aws":
        letters = "".join(takewhile(str.isalpha, name))
        return {code for code, prefixes in _AWS_PREFIXES.items() if letters in prefixes}
    if provider == "azure":
        return {"cores", _azure_family(name)}
    if provider == "gcp":
        series = name.partition("-")[0]
        return {f"{series.upper()}_CPUS"} | ({"CPUS"} if series in _GCP_SHARED else set())
    return set()


def _azure_family(name: str) -> str:
    """Return the family of a size: ``standardddsv5family`` of D32ds_v5."""
    parts = re.fullmatch(_AZURE_TYPE, name)
    if parts is None:
        return ""
    series, features, accelerator, version = (part or "" for part in parts.groups())
    if series == "A" and not version:
        return "standarda0_a7family"
    if series == "B":  # its families leave out how much memory a size has
        features = re.sub("[lmt]", "", features)
    return f"standard{series}{features}{accelerator}{version}family".lower()

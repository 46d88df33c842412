"""Build what a release consists of: ``make release``.

A source distribution, a wheel, an SBOM of what is installed at run time (CycloneDX 1.6), and
``SHA256SUMS`` over them, signed where ``SIGNING_KEY`` names a key. Needs no network. The same
commit with the same versions installed gives the same bytes: times are that of the commit, or
``SOURCE_DATE_EPOCH`` (https://reproducible-builds.org/specs/source-date-epoch/).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, License, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from relayd.version import __version__

_ROOT = Path(__file__).parents[1]
_LONGEST_NAME = 60
_NAMESPACE = "relayd"
"""Of signatures: one of these is valid for no other purpose (ssh-keygen(1), -Y sign)."""


def build(folder: Path) -> list[Path]:
    """Make source distribution, wheel, SBOM and sums in a folder that has none of them."""
    folder.mkdir(parents=True)
    made_s = int(os.environ.get("SOURCE_DATE_EPOCH") or _output("git", "log", "-1", "--format=%ct"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(made_s)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=_ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    bill = folder / f"relayd-{__version__}.cdx.json"
    bill.write_text(bill_of_materials(datetime.fromtimestamp(made_s, UTC)) + "\n")
    files = sorted(folder.iterdir())
    sums = folder / "SHA256SUMS"
    sums.write_text(
        "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    )
    return [*files, sums]


def sign(sums: Path, key: str) -> Path:
    """Sign the sums with a file that holds an SSH key, or else a key that GnuPG knows."""
    if Path(key).is_file():
        subprocess.run(
            ["ssh-keygen", "-Y", "sign", "-f", key, "-n", _NAMESPACE, str(sums)], check=True
        )
        return sums.with_name(f"{sums.name}.sig")
    signature = sums.with_name(f"{sums.name}.asc")
    command = ["gpg", "--batch", "--local-user", key, "--armor", "--output", str(signature)]
    subprocess.run([*command, "--detach-sign", str(sums)], check=True)
    return signature


def bill_of_materials(made: datetime) -> str:
    """Return the SBOM: relayd, its dependencies, and those of its extras that are installed."""
    extras = {"", *(distribution("relayd").metadata.get_all("Provides-Extra") or ())}
    required = dict(_needed("relayd", {""}))
    optional = dict(_needed("relayd", extras))
    relayd = _component(optional.pop("relayd"), ComponentType.APPLICATION, None)
    parts = {
        name: _component(
            found,
            ComponentType.LIBRARY,
            ComponentScope.REQUIRED if name in required else ComponentScope.OPTIONAL,
        )
        for name, found in sorted(optional.items())
    }
    bill = Bom(components=parts.values())
    bill.metadata.component = relayd
    bill.metadata.timestamp = made
    bill.metadata.properties.add(Property(name="python", value=_python()))
    content = " ".join(str(part.purl) for part in (relayd, *parts.values()))
    bill.serial_number = uuid5(NAMESPACE_URL, content)
    known = {"relayd": relayd, **parts}
    for name, found in {"relayd": distribution("relayd"), **optional}.items():
        below = {
            canonicalize_name(one.name)
            for one in _requirements(found, extras if name == "relayd" else {""})
        }
        below &= set(known) - {name}  # an extra may name others of its own package
        bill.register_dependency(known[name], [known[one] for one in sorted(below)])
    return str(JsonV1Dot6(bill).output_as_string(indent=2))


def _needed(name: str, extras: set[str]) -> Iterator[tuple[str, Distribution]]:
    """Yield an installed distribution with all that it needs, each once."""
    waiting, seen = [(name, extras)], {name}
    while waiting:
        name, extras = waiting.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # of an extra that is not installed
        yield name, found
        for requirement in _requirements(found, extras):
            below = canonicalize_name(requirement.name)
            if below not in seen:
                seen.add(below)
                waiting.append((below, {"", *requirement.extras}))


def _requirements(found: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in found.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield requirement


def _component(found: Distribution, kind: ComponentType, scope: ComponentScope | None) -> Component:
    name = canonicalize_name(found.metadata["Name"])
    address = PackageURL("pypi", name=name, version=found.version)
    return Component(
        name=name,
        version=found.version,
        type=kind,
        scope=scope,
        bom_ref=str(address),
        purl=address,
        licenses=_licenses(found),
    )


def _licenses(found: Distribution) -> list[License]:
    """Return the licences in a distribution's metadata, from the newest of three fields."""
    for expression in found.metadata.get_all("License-Expression") or ():
        return [LicenseExpression(expression)]
    (text,) = found.metadata.get_all("License") or ("",)
    if text and len(text) <= _LONGEST_NAME:
        return [DisjunctiveLicense(name=text)]
    classifiers = found.metadata.get_all("Classifier") or []
    names = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: ")]
    return [DisjunctiveLicense(name=name) for name in names]


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Build all into the folder that is named, else ``dist/VERSION``, or make none."""
    folder = Path(arguments[0] if arguments else _ROOT / "dist" / __version__)
    if folder.exists():
        print(f"{folder} is there already: remove it first", file=sys.stderr)
        return 2
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of one that was killed
    try:
        made = build(part)
        if key := os.environ.get("SIGNING_KEY"):
            made.append(sign(made[-1], key))
        else:
            print("Not signed: SIGNING_KEY names no key.", file=sys.stderr)
        part.rename(folder)
    except subprocess.CalledProcessError as error:
        print(f"No release: {error.cmd[0]} ended with {error.returncode}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print("\n".join(str(folder / path.name) for path in made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

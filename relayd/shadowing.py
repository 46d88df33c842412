"""Other packages named ``planner`` or ``probes``, which Python may find before those of relayd."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that all packages of relayd are installed in."""
PACKAGES = ("planner", "probes")


class ShadowedPackageError(ImportError):
    """Python finds another module in place of a package of relayd."""


def require_own_packages() -> None:
    """Look where Python finds the packages of relayd, without importing them.

    Raises ShadowedPackageError if one is found elsewhere, or was imported from elsewhere; it names
    the file.
    """
    for name in PACKAGES:
        module = sys.modules.get(name)
        spec = None if module else find_spec(name)
        found = module.__file__ if module else spec and spec.origin
        if found and ROOT not in Path(found).resolve().parents:
            raise ShadowedPackageError(
                f"Python finds another {name!r} before that of relayd: {found}. Rename it, run "
                f"from another folder or with `python -P`, or put {ROOT} first in PYTHONPATH.",
                name=name,
                path=found,
            )

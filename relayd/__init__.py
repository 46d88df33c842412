"""relayd: send it direct, or relay it? Measures the WAN between datacenters and plans transfers.

import relayd

wan = relayd.open()
plan = wan.plan("us-east", "sa", volume_gb=500)
print(plan.verdict, plan.reason)
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from relayd.shadowing import require_own_packages

# Imported on first use: `import relayd` costs nothing, and a command line loads what it needs. The
# file that type checkers read says where each name is from.
_STUB = Path(__file__).with_suffix(".pyi").read_text()
_HOME = {name: home for home, name in re.findall(r"from (\S+) import (\w+)", _STUB)}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        require_own_packages()
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

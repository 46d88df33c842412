"""Figures, links and names of answers as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.model.units import duration_text, gbps_text, usd_text, volume_text

# C0 but tab and line feed, DEL, C1, what changes the reading order (UAX 9), what else ends lines,
# and halves of surrogate pairs, which no encoding has.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


def neutralised(text: str) -> str:
    r"""Return text with control characters as escapes such as ``\u001b``."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # as nearly always
        return text
    return re.sub(_UNSAFE, lambda found: f"\\u{ord(found[0]):04x}", text)


_BY_UNIT: dict[str, Callable[[Any], str]] = {
    "gbps": gbps_text,
    "s": duration_text,
    "gb": volume_text,
    "usd": lambda usd: usd_text(usd).replace("$", ""),  # its header has the sign
    "ms": "{:.0f} ms".format,
    "share": "{:.0%}".format,
    "gain": "{:.2f}x".format,
    "ratio": "{:.2f}x".format,
}


def figure(of: Any, field: str) -> str:
    """Return a field of an object or a mapping as text, by the unit that its name ends with.

    Fields may be dotted; ``-`` stands for None and for nothing, and counts are summed up. After a
    colon there may be a format, as in ``rtt_ms:.1f`` or ``clock_s:{:+.2f} s``; ``link`` is both
    ends of one.
    """
    field, _, style = field.partition(":")
    if field == "link":
        return link(of.src, of.dst, getattr(of, "address", None))
    for name in field.split("."):
        of = of.get(name) if isinstance(of, Mapping) else getattr(of, name)
    if of is None or of in ("", (), []):
        return "-"
    if style:
        return style.format(of) if "{" in style else format(of, style)
    if isinstance(of, Mapping):
        return str(sum(of.values()))
    if isinstance(of, (list, tuple)):
        return ", ".join(map(str, of))
    unit = re.search(rf"(?:^|[_.])({'|'.join(_BY_UNIT)})(_low|_high)?(\.\w+)?$", field)
    if unit and "_per_" not in field and not isinstance(of, str):
        return _BY_UNIT[unit[1]](of)
    return f"{of:.4g}" if isinstance(of, float) else str(of)


def link(src: str, dst: str, address: str | None, to: str = " -> ") -> str:
    """Return a link, or the VM at its source, and whether it is over private addresses."""
    ends = f"{src}{to}{dst}" if dst else src
    return f"{ends} (private)" if address == "private" else ends

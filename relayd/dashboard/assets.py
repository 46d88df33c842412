"""Files that pages load: scripts, styles, the outline of the world, and what draws charts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

FILES = Path(__file__).resolve().parent / "files"
MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}

# Pages import it as a module; Vega-Embed brings the interpreter that needs no `eval`.
_CHARTS = "globalThis.relaydCharts = { vegaEmbed, vegaLite, vega };"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent.

    Attributes
    ----------
    content : bytes
    media_type : str
    tag : str
        For If-None-Match.
    """

    content: bytes
    media_type: str
    tag: str


def asset(content: bytes, media_type: str) -> Asset:
    """Return content ready to be sent."""
    return Asset(content, media_type, blake2b(content, digest_size=12).hexdigest())


@cache
def assets() -> dict[str, Asset]:
    """Return all files by folder and name: only these are served, whatever a path may say."""
    return {
        str(path.relative_to(FILES)): asset(path.read_bytes(), MEDIA_TYPES[path.suffix])
        for path in sorted(FILES.glob("*/*"))
        if path.suffix in MEDIA_TYPES
    }


@cache
def charts() -> Asset | None:
    """Return Vega, Vega-Lite and Vega-Embed as one script; takes a second or two.

    None without the extra ``report``.
    """
    try:
        import vl_convert
    except ImportError:
        return None
    return asset(vl_convert.javascript_bundle(_CHARTS).encode(), MEDIA_TYPES[".js"])

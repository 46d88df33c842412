"""Files that pages load: scripts, styles and the outline of the world."""

from __future__ import annotations

import gzip
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


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent.

    Attributes
    ----------
    content, compressed : bytes
        As it is, and by gzip.
    media_type : str
    tag : str
        For If-None-Match, quoted.
    """

    content: bytes
    compressed: bytes
    media_type: str
    tag: str


def asset(content: bytes, media_type: str) -> Asset:
    """Return content ready to be sent."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    return Asset(content, gzip.compress(content, 9, mtime=0), media_type, tag)


@cache
def assets() -> dict[str, Asset]:
    """Return all files by folder and name: only these are served, whatever a path may say."""
    return {
        str(path.relative_to(FILES)): asset(path.read_bytes(), MEDIA_TYPES[path.suffix])
        for path in sorted(FILES.glob("*/*"))
        if path.suffix in MEDIA_TYPES
    }

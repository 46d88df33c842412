"""Compression by gzip, and the entity tags that go with it (RFC 9110, 8.8.3 and 12.5.3)."""

from __future__ import annotations

from aiohttp import web

# A body that fits into one packet arrives no sooner for being shorter.
LEAST_BYTES = 1400
# From here on compressed_response is left to a thread: 100 kB take some 2 ms.
LEAST_BYTES_FOR_A_THREAD = 100_000
_END = '-gzip"'


def accepts_gzip(header: str | None) -> bool:
    """Return whether an Accept-Encoding header accepts gzip; without one, nothing is compressed."""
    weights: dict[str, float] = {}
    for part in (header or "").lower().split(","):
        coding, _, parameter = part.partition(";")
        name, _, value = parameter.partition("=")
        try:
            weight = float(value) if name.strip() == "q" else 1.0
        except ValueError:
            weight = 0.0
        weights[coding.strip().replace("x-gzip", "gzip")] = weight
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def tag_of(plain_tag: str, *, compressed: bool) -> str:
    """Return the tag of a document as it is sent: each encoding has a strong tag of its own."""
    return plain_tag.removesuffix('"') + _END if compressed else plain_tag


def is_known(header: str | None, plain_tag: str) -> bool:
    """Return whether If-None-Match names a document, in either encoding; compared weakly."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    known = {part.strip().removeprefix("W/") for part in header.split(",")}
    return not known.isdisjoint((plain_tag, tag_of(plain_tag, compressed=True)))


def compressed_response(body: bytes, **options: object) -> web.Response:
    """Return a response that is compressed while it is sent."""
    response = web.Response(
        body=body,
        zlib_executor_size=LEAST_BYTES_FOR_A_THREAD,
        **options,  # type: ignore[arg-type]
    )
    response.enable_compression(web.ContentCoding.gzip)
    return response

"""Writes pictures of pages with a palette: a third of the size of a screenshot in full colour."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Page

MOST_COLOURS = 256
# The browser decodes what it has drawn: PNG has filters that are slow to undo in Python.
_PIXELS = """async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768)
    text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return [image.width, image.height, btoa(text)];
}"""


def pixels(blank: Page, png: bytes) -> NDArray[np.uint8]:
    """Return a PNG's pixels, shape (height, width, 3); `blank` is an empty page."""
    address = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    width, height, text = blank.evaluate(_PIXELS, address)
    raw = np.frombuffer(base64.b64decode(text), np.uint8)
    return raw.reshape(height, width, 4)[:, :, :3]


def with_palette(image: NDArray[np.uint8]) -> bytes:
    """Return an image as a PNG of its most frequent colours, others in the nearest of them."""
    height, width, _ = image.shape
    colours, number, counts = np.unique(
        image.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True
    )
    palette = colours[np.argsort(-counts, kind="stable")[:MOST_COLOURS]].astype(np.int32)
    nearest = np.empty(len(colours), np.uint8)
    for first in range(0, len(colours), 1024):
        part = colours[first : first + 1024, None].astype(np.int32)
        nearest[first : first + 1024] = ((part - palette[None]) ** 2).sum(axis=2).argmin(axis=1)
    rows = nearest[number.reshape(-1)].reshape(height, width)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)  # filter 0: as they are
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", palette.astype(np.uint8).tobytes()),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Return a chunk of a PNG (ISO/IEC 15948, 5.3)."""
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

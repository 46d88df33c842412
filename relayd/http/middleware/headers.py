"""Headers of every answer, for browsers: nothing is to be guessed, surrounded, kept or loaded."""

from __future__ import annotations

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "relayd",
}
HSTS = ("Strict-Transport-Security", "max-age=31536000")

"""What iperf3's error texts mean and what to do about them.

iperf3 puts them into the JSON and, with ``-J``, exits 0 all the same.
"""

from __future__ import annotations

# Matched in order against the lower-case text.
_MEANINGS: tuple[tuple[str, str], ...] = (
    ("server is busy", "it runs one test at a time; give each client its own port, or wait"),
    ("connection refused", "no iperf3 server listens there: start `iperf3 -s`"),
    ("no route to host", "routing or a firewall is in the way"),
    ("network is unreachable", "routing or a firewall is in the way"),
    ("timed out", "a firewall drops port 5201, or the server is down"),
    ("name or service not known", "the server's name does not resolve"),
    ("temporary failure in name resolution", "the server's name does not resolve"),
    ("client has terminated", "the client was interrupted before the end"),
    ("server has terminated", "the server was interrupted before the end"),
    ("unable to receive results", "the other side ended before the results were exchanged"),
    ("control socket has closed", "the other side ended or a firewall cut the connection"),
    ("unable to receive control message", "the other side ended or refused the parameters"),
    ("unable to create a new stream", "a stream could not be opened"),
    ("authentication", "the server wants a user name and password"),
    ("bitrate", "the server limits the bitrate of a test"),
)


def explained(text: object) -> str:
    """Return iperf3's own text and, where known, its meaning."""
    own = " ".join(text.split())[:120] if isinstance(text, str) else "an error without text"
    own = own.removeprefix("error - ").rstrip(": ")
    lower = own.lower()
    meaning = next((meaning for part, meaning in _MEANINGS if part in lower), "")
    return f"iperf3 failed: {own} ({meaning})" if meaning else f"iperf3 failed: {own}"

"""How window, round-trip time and caps make throughput, and what a short test hides.

Constants were fitted to open measurements between cloud datacenters: a 63-region grid of
January 2022 (64 connections, 5 s) and a single-connection survey of February 2022 (10 s).
"""

from __future__ import annotations

from math import log2

# Round trips until a bundle of connections, or a fixed transfer, is up to speed.
RAMP_UP_ROUND_TRIPS = 8.5
# Ten segments of 1460 bytes: the initial window of RFC 6928, in MB.
INITIAL_WINDOW_MB = 0.0146
# Receive window of a host never seen: Linux's default tcp_rmem maximum of 6 MiB, of which half
# is advertised (tcp_adv_win_scale 1).
DEFAULT_WINDOW_MB = 3.0
MBIT_PER_MB = 8.0
# 5 s at 400 ms, the longest round trip between datacenters, still shows a third.
LEAST_SHARE = 0.2


def window_limited_mbps(window_mb: float, rtt_ms: float) -> float:
    """Return ``W / RTT``: what one flow reaches when nothing but its window limits it."""
    return MBIT_PER_MB * window_mb * 1000.0 / rtt_ms


def per_flow_mbps(window_mb: float, rtt_ms: float, cap_mbps: float) -> float:
    """Return the steady throughput of one flow, ``min(W / RTT, cap)``."""
    return min(window_limited_mbps(window_mb, rtt_ms), cap_mbps)


def ramp_up_s(rtt_ms: float) -> float:
    """Return the time that getting up to speed costs a transfer over one link, ``8.5 RTT``."""
    return RAMP_UP_ROUND_TRIPS * rtt_ms / 1000.0


def bundle_share_of_steady(rtt_ms: float, duration_s: float) -> float:
    """Return the share of the steady rate that a short test of many connections shows.

    ``1 - 8.5 RTT / T`` from a cold start. Not below :data:`LEAST_SHARE`: a test that spent nearly
    all its time in slow start says little of the steady rate, and dividing by a tiny share would
    make a fantasy of its noise.
    """
    return max(LEAST_SHARE, 1.0 - ramp_up_s(rtt_ms) / duration_s)


def flow_ramp_up_s(window_mb: float, rtt_ms: float) -> float:
    """Return the time that slow start costs one connection, ``c RTT``, ``c = log2(W / IW) - 1``.

    The window doubles each round trip from its initial size (RFC 6928), and what those round trips
    carry together is worth one of full speed.
    """
    doublings = log2(max(window_mb, INITIAL_WINDOW_MB) / INITIAL_WINDOW_MB)
    return max(0.0, doublings - 1.0) * rtt_ms / 1000.0


def flow_share_of_steady(window_mb: float, rtt_ms: float, duration_s: float) -> float:
    """Return the share of ``W / RTT`` that a short test of one connection shows.

    ``1 - c RTT / T`` (:func:`flow_ramp_up_s`); not below :data:`LEAST_SHARE`, as for bundles.
    """
    return max(LEAST_SHARE, 1.0 - flow_ramp_up_s(window_mb, rtt_ms) / duration_s)


def window_from_flow_mb(throughput_mbps: float, rtt_ms: float, duration_s: float | None) -> float:
    """Return the window that explains what one flow reached.

    Parameters
    ----------
    throughput_mbps, rtt_ms : float
    duration_s : float | None
        Length of the test if it began with slow start; None for a steady value.
    """
    window_mb = throughput_mbps * rtt_ms / 1000.0 / MBIT_PER_MB
    if duration_s is None:
        return window_mb
    steady = window_mb
    for _ in range(8):  # a contraction: the share depends on the window's logarithm
        steady = window_mb / flow_share_of_steady(steady, rtt_ms, duration_s)
    return steady

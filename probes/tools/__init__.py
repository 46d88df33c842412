"""Measuring tools: their commands, servers and output, host checks, and installing them."""

# Here, as scripts that emit plans need it, and nothing else of tools: they load SSH from asyncio.
MOST_STREAMS = 128
"""Of one iperf3: MAX_STREAMS of its source, src/iperf.h (3.12 to 3.19; read November 2026)."""

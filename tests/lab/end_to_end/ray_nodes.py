"""Waits until a Ray cluster has so many nodes: ``ADDRESS COUNT``; runs in the head's site."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import ray


def main(address: str, count: int) -> None:
    """Try again and again; the caller sets a limit."""
    own = address.partition(":")[0]
    while not ray.is_initialized():
        with suppress(Exception):  # as long as it starts, each of its parts fails in its own way
            ray.init(address, _node_ip_address=own, log_to_driver=False)
        time.sleep(0.5)
    while sum(node["Alive"] for node in ray.nodes()) < count:
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

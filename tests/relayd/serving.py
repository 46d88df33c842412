"""A service in a process of its own, for tests that ask it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]


@contextmanager
def serving(db: Path, *options: str, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a store on a free port of loopback; gives the address and the process."""
    command = [sys.executable, "-m", "relayd", "serve", "--db", str(db), "--port", str(port)]
    process = subprocess.Popen(
        [*command, *options], cwd=_ROOT, env={**os.environ, "RELAYD_SERVE_REFRESH_S": "0.2"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        # Logs are on standard output too: the address is in the line that is not JSON.
        for line in process.stdout:
            if found := re.search(r"serves at (http\S+)", line):
                break
        else:
            raise AssertionError(f"the service ended with {process.wait()}")
        yield found[1], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.communicate(timeout=30)

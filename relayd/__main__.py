"""The command ``relayd``."""

from __future__ import annotations

import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code (:func:`relayd.cli.running.run`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    if "_ARGCOMPLETE" in os.environ:  # a shell that completes a line
        from relayd.cli.help.completion import complete

        complete()
    from relayd.cli.running import run

    return run(sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())

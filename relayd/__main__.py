"""The command ``relayd``, and ``python -m relayd``."""

from __future__ import annotations

import sys
from pathlib import Path

from relayd.shadowing import ROOT, ShadowedPackageError, require_own_packages


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; see :func:`relayd.cli.running.run`."""
    try:
        require_own_packages()
    except ShadowedPackageError as error:
        print(f"relayd: {error}", file=sys.stderr)
        return 2
    # They import what was just looked for, and the questions of all distributions.
    from planner.model.errors import RelaydError

    try:
        from relayd.cli.running import main as run_command

        return run_command(arguments)
    except RelaydError as error:
        print(f"relayd: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    # Python puts the working folder first, whose modules are none of a command's business.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() != ROOT:
        del sys.path[0]
    sys.exit(main())

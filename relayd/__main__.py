"""The command ``relayd``."""

from __future__ import annotations

import gc
import os
import sys

from relayd.version import __version__


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code (:func:`relayd.cli.running.run`)."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"]:
        # All else takes ten times as long to import. It says what is wrong where printing fails.
        try:
            print(f"relayd {__version__}", flush=True)
            return 0
        except OSError:
            pass
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, by `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
    if "_ARGCOMPLETE" in os.environ:  # a shell that completes a line
        from relayd.cli.help.completion import complete

        complete()
    brief = words[:1] == ["plan"]  # done before it has made much garbage: none is looked for
    enabled = gc.isenabled()
    if brief:
        gc.disable()
    try:
        from relayd.cli.running import run

        code = run(words)
        # Before garbage counts again: all that was made would be looked through at once.
        if arguments is None and words[:1] in (["plan"], ["import"]):
            _end(code)
        return code
    finally:
        if enabled:
            gc.enable()


def _end(code: int) -> None:
    """End the process at once: taking it to pieces takes as long as starting Python.

    Everything is flushed and closed by now. A profiler or a debugger still has work to do.
    """
    if sys.getprofile() is None and sys.gettrace() is None:
        for stream in (sys.stdout, sys.stderr):
            try:  # noqa: SIM105 - contextlib takes long to load
                stream.flush()
            except (OSError, ValueError):  # it is closed, or nobody reads it any more
                pass
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())

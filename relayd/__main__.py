"""The command ``relayd``."""

from __future__ import annotations

import sys

from planner.model.errors import RelaydError
from relayd.cli.parser import parse
from relayd.cli.text import safe_output
from relayd.cli.wording import worded


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, 5 finished in part,
    1 our own fault.
    """
    with safe_output():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    options = None
    try:
        options = parse(arguments)
        code = options.run(options)
        sys.stdout.flush()  # here, where a closed pipe can still be told from a fault
    except RelaydError as error:
        asked = vars(options) if options else {}
        text = worded(error, asked.get("request"), asked.get("renamed") or {})
        print(f"relayd: {text}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # The reader of a pipe has had enough (`relayd links | head`): not an error.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("relayd: interrupted", file=sys.stderr)
        return 130
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())

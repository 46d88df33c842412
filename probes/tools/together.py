"""Several programs on one host at once, as one command: servers, or clients that begin together.

An SSH connection has few channels, and a process of its own that waits for heartbeats in each. One
command for all programs of a kind takes one channel, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from probes.fleet.failures import ProbeError, missing_tool
from probes.fleet.hosts import Host
from probes.fleet.remote import NOT_FOUND, Output, remote_line
from probes.tools.interface import failure

if TYPE_CHECKING:  # which loads asyncssh
    from probes.fleet.session import RemoteProcess

ENDED = b"relayd: ended "
"""Begin of the line with the exit code of one of several servers that has ended."""

# Each argument is a command as one line.
_SERVERS = """\
for line; do
    { sh -c "exec $line" || echo "relayd: ended $?"; } &
done
wait
"""

# $1 seconds to wait, $2 a command as one line, and so on. Prints, in this order, the exit code, the
# number of bytes and the output of each. The output of a client waits in its own shell until those
# before it have printed theirs, so that no file is needed.
_CLIENTS = """\
all() {
    seconds=$1 line=$2
    shift 2
    if [ "$#" -gt 0 ]; then all "$@"; fi | {
        sleep "$seconds"
        output=$(sh -c "exec $line" 2>&1 </dev/null)
        code=$?
        printf '%s %s\\n%s\\n' "$code" "${#output}" "$output"
        exec cat
    }
}
all "$@"
"""


def servers(commands: Iterable[Sequence[str]]) -> list[str]:
    """Return the command that runs others side by side until all have ended.

    :func:`all_ready` waits until they listen.
    """
    return ["sh", "-c", _SERVERS, "relayd", *map(remote_line, commands)]


async def all_ready(
    running: RemoteProcess, host: Host, tool: str, ready: bytes, count: int
) -> None:
    """Wait until a number of servers have printed that they are ready.

    Raises ProbeError if one of them ended before.
    """
    for _ in range(count):
        line = await running.line_with(ready, ENDED)
        if ready in line:
            continue
        output = await running.ended()
        if line.removeprefix(ENDED).strip() in map(b"%d".__mod__, NOT_FOUND):
            raise missing_tool(host.name, tool)
        raise failure(host, tool, output.error_text)


def clients(commands: Iterable[tuple[float, Sequence[str]]]) -> list[str]:
    """Return the command that runs others at the same time, each after a number of seconds.

    :func:`outputs` reads its output.
    """
    words = [
        word for after_s, command in commands for word in (f"{after_s:.3f}", remote_line(command))
    ]
    return ["sh", "-c", _CLIENTS, "relayd", *words]


def outputs(host: str, printed: bytes) -> list[Output]:
    """Return the output of each client, in the order of their commands.

    Both outputs of a client are one, which is returned as either.

    Raises ProbeError if the output is cut off.
    """
    found = []
    while printed:
        header, _, rest = printed.partition(b"\n")
        code, _, size = header.partition(b" ")
        if not (code.isdigit() and size.isdigit() and len(rest) > int(size)):
            raise ProbeError(host, "output", "what its programs printed is cut off")
        text = rest[: int(size)]
        found.append(Output(int(code), text, text))
        printed = rest[int(size) + 1 :]
    return found

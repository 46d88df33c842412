"""Failures of probes: their causes, and whether to try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from planner.model.errors import RelaydError

Cause: TypeAlias = Literal[
    "unreachable",  # no SSH connection, or it was lost
    "host-key",  # unknown or changed
    "login",  # refused
    "missing-tool",
    "no-space",
    "busy",  # the port is taken, or the server has a test
    "filtered",  # nothing comes back
    "timeout",
    "tool",  # the tool says that it failed
    "limit",  # its allowance is too little for so fast a path
    "setting",  # a setting of the system can't be changed
    "output",  # the tool's output can't be a measurement
]

# Trying again right away gives the same answer.
_LASTING: frozenset[Cause] = frozenset({"host-key", "login", "missing-tool", "no-space", "setting"})
# It is the host that fails, whatever is asked of it.
_OF_THE_HOST: frozenset[Cause] = _LASTING | {"unreachable"}


class ProbeError(RelaydError):
    """One probe that failed, or one host that can't be used.

    Parameters
    ----------
    host : str
        Name of the host at fault.
    cause : Cause
    problem : str
        The failure, as a clause.
    remedy : str
        A full sentence, or ``""``.
    """

    exit_code = 5

    def __init__(self, host: str, cause: Cause, problem: str, remedy: str = "") -> None:
        self.host = host
        self.cause: Cause = cause
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{host}: {problem}." + (f" {remedy}" if remedy else ""))

    @property
    def lasting(self) -> bool:
        """True if trying again right away is of no use."""
        return self.cause in _LASTING

    @property
    def of_the_host(self) -> bool:
        """True if other probes of this host will fail the same way."""
        return self.cause in _OF_THE_HOST


def missing_tool(host: str, tool: str) -> ProbeError:
    """Return the error that a tool can't be run on a host."""
    remedy = "`relayd measure fleet check --install-tools` installs what is missing."
    return ProbeError(host, "missing-tool", f"{tool} is not there or can't be run", remedy)


@asynccontextmanager
async def side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """Run tasks until all have ended; the first that fails ends the others and the block.

    Raises its ProbeError alone: those after it are mostly its consequences.
    """
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except* ProbeError as failed:
        error: BaseException = failed
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None

"""Access to the sshd of sites: ports on 127.0.0.1, carried into the site's namespace.

Nothing is added to the machine's own network: the ports are bound in it, and connections go
on from a socket that was made in the site's namespace.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

from probes.lab.behaviours import BLACKHOLE, RESET, UP

_LINGER_NOT = struct.pack("ii", 1, 0)


class SshForward:
    """Carries connections to one site.

    Parameters
    ----------
    listener : socket.socket
        Bound and listening outside.
    socket_in_site : callable
        Makes a TCP socket in the site's network namespace.
    """

    def __init__(
        self, listener: socket.socket, socket_in_site: Callable[[], socket.socket]
    ) -> None:
        self._listener = listener
        self._socket_in_site = socket_in_site
        self._state = UP
        self._may_flow = asyncio.Event()
        self._may_flow.set()
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            outside, _ = await loop.sock_accept(self._listener)
            task = asyncio.create_task(self._carry(outside))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

    def set_state(self, state: str) -> None:
        """Let the host be ``up``, ``blackhole`` (nothing gets through) or ``reset``."""
        self._state = state
        if state == BLACKHOLE:
            self._may_flow.clear()
        else:
            self._may_flow.set()
        if state == RESET:
            for task in self._connections:
                task.cancel()

    async def _carry(self, outside: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        outside.setblocking(False)
        outside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        inside: socket.socket | None = None
        try:
            await self._may_flow.wait()
            if self._state == RESET:
                raise ConnectionResetError
            inside = self._socket_in_site()
            inside.setblocking(False)
            inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(inside, ("127.0.0.1", 22))
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(outside, inside))
                both.create_task(self._pump(inside, outside))
        except* (OSError, asyncio.CancelledError):
            # Closing with unsent data pending resets, as a peer that is gone would.
            outside.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        finally:
            outside.close()
            if inside is not None:
                inside.close()

    async def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(source, 65_536):
            await self._may_flow.wait()
            await loop.sock_sendall(sink, data)
        sink.shutdown(socket.SHUT_WR)

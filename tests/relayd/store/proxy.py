"""A proxy on the way to a server, which breaks connections or hangs at a chosen moment."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Self


class Proxy:
    """Forwards connections to a port of this machine.

    Parameters
    ----------
    server_port : int
    host : str
        Address to listen at.

    Attributes
    ----------
    port : int
        Where it listens.
    cuts : int
        How many connections it has broken.
    keeps_open : bool
        Whether clients are not told when the server closes a connection, as after a failover
        behind a load balancer.
    delay_s : float
        How long it holds what passes, in either direction.
    """

    def __init__(self, server_port: int, host: str = "127.0.0.1") -> None:
        self.keeps_open = False
        self.delay_s = 0.0
        self._server_port = server_port
        self._listening = socket.create_server((host, 0))
        self.port: int = self._listening.getsockname()[1]
        self.cuts = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._words: bytes | None = None
        self._forward = False
        self._open: list[socket.socket] = [self._listening]
        self._clients: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]

    def cut_at(self, words: bytes, *, forward: bool) -> None:
        """Break the next connection on which a client says this, heard by the server or not."""
        self._words, self._forward = words, forward

    def cut(self, how: int = socket.SHUT_RDWR) -> None:
        """Break all connections now; by ``SHUT_WR``, only the way back to the clients."""
        for client in [*self._clients]:
            with suppress(OSError):
                client.shutdown(how)
                self.cuts += 1

    def hang(self) -> None:
        """Take connections and what comes over them, and pass nothing on."""
        self._flowing.clear()

    def go_on(self) -> None:
        """Pass on what has come, and all that comes."""
        self._flowing.set()

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._flowing.set()
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._server_port))
                except OSError:  # the server is away
                    client.close()
                    continue
                self._open += [client, server]
                self._clients.add(client)
                for pair in ((client, server), (server, client)):
                    thread = threading.Thread(target=self._pump, args=(*pair, pair[0] is client))
                    self._threads.append(thread)
                    thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while content := source.recv(65536):
                if from_client and self._words is not None and self._words in content:
                    self._words = None
                    self.cuts += 1
                    source.shutdown(socket.SHUT_RDWR)  # the answer finds nobody
                    if not self._forward:
                        break
                self._flowing.wait()
                time.sleep(self.delay_s)
                sink.sendall(content)
        if self.keeps_open and not from_client:
            return
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        if from_client:
            self._clients.discard(source)

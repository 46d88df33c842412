"""A server of price documents on loopback, which can break off and answer badly."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import unquote

from aiohttp import web


class Publisher:
    """Documents by path and query, with ETags.

    Attributes
    ----------
    asked : list
        Path and status of each request.
    broken : set
        Paths that break off half-way, once.
    failing : dict
        Path to a status, once.
    """

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}
        self.asked: list[tuple[str, int]] = []
        self.broken: set[str] = set()
        self.failing: dict[str, int] = {}
        self.headers: list[Mapping[str, str]] = []
        self.url = ""

    def put(self, path: str, document: object) -> None:
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.documents[path] = content

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = unquote(request.path_qs)
        self.headers.append(request.headers)
        status = self.failing.pop(path, 200 if path in self.documents else 404)
        content = self.documents.get(path, b"")
        etag = f'"{hash(content):x}"'
        if status == 200 and request.headers.get("If-None-Match") == etag:
            status = 304
        self.asked.append((path, status))
        if status != 200:
            return web.Response(status=status)
        response = web.StreamResponse(status=status, headers={"ETag": etag})
        response.content_length = len(content)
        await response.prepare(request)
        if path in self.broken:
            self.broken.remove(path)
            await response.write(content[: len(content) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(content)
        return response


@contextmanager
def publishing() -> Iterator[Publisher]:
    publisher, loop = Publisher(), asyncio.new_event_loop()

    async def begin() -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/{path:.*}", publisher.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        publisher.url = f"http://{host}:{port}"
        return runner

    runner = loop.run_until_complete(begin())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield publisher
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

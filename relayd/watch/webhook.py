"""The webhook for events of links: one configured address, signed requests.

Events go in order, each until it is accepted, also after a restart.

Only the configured address is ever contacted: redirects are not followed, nothing of an event
becomes part of an address, and proxies of the environment are not used. The body is signed so that
the receiver can verify its sender (HMAC-SHA-256, RFC 2104)::

    Relayd-Signature: t=<Unix time>,v1=<hex HMAC of "<t>.<body>" under the secret>
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp

from planner.model.errors import InputError, RelaydError
from relayd.store import Store
from relayd.store.events import Event, Events
from relayd.times import utc_text
from relayd.watch.storage import StoreThread

SIGNATURE = "Relayd-Signature"
SECRET = "RELAYD_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
TIMEOUT_S = 10.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")
FIRST_RETRY_S, MOST_RETRY_S = 1.0, 300.0
GIVE_UP_S = 86400.0
"""An event that was not accepted for a day is dropped."""
KINDS = frozenset({"leg", "shift"})
LAST_DELIVERED = "webhook_last_event_id"
POLL_EVERY_S = 1.0


class DeliveryError(RelaydError):
    """A webhook that did not accept an event."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The receiver of events, over https, or http on this machine alone."""

    url: str
    secret: str = field(repr=False)  # shared with the receiver; never shown

    @classmethod
    def from_environment(cls, url: str, option: str) -> Webhook:
        """Return the webhook at an address, with the secret of the environment.

        Raises InputError if there is no secret, or something is wrong with it or the address.
        """
        secret = os.environ.get(SECRET)
        if not secret:
            remedy = "Put a random text that the receiver knows too into the environment."
            raise InputError(SECRET, f"is needed for {option}", remedy=remedy)
        return cls(url, secret)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            secure = parts.scheme == "https" or (
                parts.scheme == "http" and parts.hostname in LOOPBACK
            )
            is_right = secure and parts.hostname and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or re.search(r"[\x00-\x20\x7f#]", self.url) or "@" in parts.netloc:
            problem = "is not an https address without user, fragment and blanks"
            remedy = "Write https://HOST/PATH; plain http is for this machine alone."
            raise InputError(
                "--webhook", problem, value=re.sub(r"(?s)//.*@|[?#].*", "", self.url), remedy=remedy
            )
        if len(self.secret) < 16:
            remedy = "Make one with `openssl rand -hex 32` and give it to the receiver too."
            raise InputError(SECRET, "must have at least 16 characters", remedy=remedy)

    @property
    def address(self) -> str:
        """The address without its query, which may hold a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    async def post(self, event: Event) -> None:
        """Send one event and wait for the answer, for at most some seconds.

        Raises DeliveryError if the answer is not a success, or none comes.
        """
        # Keys may be added: receivers ignore those that they do not know.
        told = {"id": event.id, "at": utc_text(event.at_s), "detail": event.detail}
        told |= {"kind": event.kind, "subject": event.subject}
        body = json.dumps(told, sort_keys=True).encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "relayd",
            "Relayd-Event": str(event.id),
            SIGNATURE: signature(self.secret, body, int(time.time())),
        }
        try:
            # A connection of its own: there are few events. Nothing comes from the environment.
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(TIMEOUT_S)) as session,
                session.post(self.url, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except (OSError, aiohttp.ClientError, ValueError) as error:
            said = str(error) or type(error).__name__
            raise DeliveryError(f"{self.address} can't be reached ({said})") from None
        if not 200 <= status < 300:
            raise DeliveryError(f"{self.address} answered {status}")


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the signature's header."""
    digest = hmac.new(secret.encode(), b"%d.%s" % (at_s, body), hashlib.sha256).hexdigest()
    return f"t={at_s},v1={digest}"


def retry_s(failures: int) -> float:
    """Return the seconds to wait after a number of failures in a row."""
    return min(MOST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 30))


@dataclass
class Notifier:
    """Delivers events to a webhook."""

    storage: StoreThread
    webhook: Webhook
    on_note: Callable[[str], None] = lambda _: None
    delivered: int = 0
    given_up: int = 0
    failures: int = 0
    problem: str = ""

    async def begin(self) -> None:
        """Go on after the last delivered event; a new webhook gets new events only."""

        def first(store: Store) -> float:
            database = store.database
            delivered = database.metadata(LAST_DELIVERED)
            if delivered is None:
                delivered = float(Events(store.database).last_id())
                database.set_metadata(LAST_DELIVERED, delivered)
            return delivered

        self._last_id = int(await self.storage.do(first))

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            events = await self.storage.do(
                lambda store: Events(store.database).after(self._last_id, limit=100)
            )
            for event in events:
                if event.kind in KINDS:
                    await self._deliver(event)
                    # Before the next one, so that a crash repeats one event at most.
                    await self._remember(event)
            if events:
                await self._remember(events[-1])
            else:
                await asyncio.sleep(POLL_EVERY_S)

    async def _deliver(self, event: Event) -> None:
        while True:
            try:
                await self.webhook.post(event)
            except DeliveryError as error:
                self.failures += 1
                self.problem = str(error)
                if self.failures == 1:
                    self.on_note(f"The webhook {error}. Trying again.")
                if time.time() - event.at_s > GIVE_UP_S:
                    self.given_up += 1
                    self.on_note(f"The webhook did not take event {event.id} for a day.")
                    return
                await asyncio.sleep(retry_s(self.failures))
            else:
                self.delivered += 1
                self.failures, self.problem = 0, ""
                return

    async def _remember(self, event: Event) -> None:
        self._last_id, last_id = event.id, float(event.id)
        await self.storage.do(lambda store: store.database.set_metadata(LAST_DELIVERED, last_id))

"""The webhook that learns what happened to links: one configured address, signed requests.

Only the configured address is ever contacted: redirects are not followed, nothing of an event
becomes part of an address, and proxies of the environment are not used. The body is signed so that
the receiver can verify its sender (HMAC-SHA-256, RFC 2104)::

    Relayd-Signature: t=<Unix time>,v1=<hex HMAC of "<t>.<body>" under the secret>
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import os
import ssl
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from planner.model.errors import InputError, RelaydError
from relayd.store.events import Event
from relayd.times import utc_text

SIGNATURE = "Relayd-Signature"
SECRET = "RELAYD_WEBHOOK_SECRET"  # noqa: S105 - the variable's name
TIMEOUT_S = 10.0
MOST_ANSWER_BYTES = 4096
LOOPBACK = ("localhost", "127.0.0.1", "::1")
FIRST_RETRY_S, MOST_RETRY_S = 1.0, 300.0
GIVE_UP_S = 86400.0
"""An event that was not accepted for a day is dropped."""
KINDS = frozenset({"leg", "shift"})


class DeliveryError(RelaydError):
    """A webhook that did not accept an event."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where events go.

    Attributes
    ----------
    url : str
        https, or http on this machine alone.
    secret : str
        Shared with the receiver; never shown.
    """

    url: str
    secret: str = field(repr=False)

    @classmethod
    def from_environment(cls, url: str, option: str) -> Webhook:
        """Return the webhook at an address, with the secret of the environment.

        Raises
        ------
        InputError
            If there is no secret, or something is wrong with it or the address.
        """
        secret = os.environ.get(SECRET)
        if not secret:
            raise InputError(
                SECRET,
                f"is needed for {option}",
                remedy="Put a random text that the receiver knows too into the environment.",
            )
        return cls(url, secret)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            _ = parts.port
        except ValueError as error:
            raise InputError("--webhook", f"is not an address: {error}") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                "--webhook",
                "is not an https address",
                value=self.address,
                remedy="Write https://HOST/PATH.",
            )
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InputError(
                "--webhook",
                "would send events unencrypted",
                value=self.address,
                remedy="Use https; plain http is for this machine alone.",
            )
        if parts.username is not None or parts.fragment:
            raise InputError(
                "--webhook",
                "must not carry a user or a fragment",
                remedy="The receiver recognises relayd by the signature.",
            )
        if any(character <= " " or character == "\x7f" for character in self.url):
            raise InputError("--webhook", "must not contain blanks or control characters")
        if len(self.secret) < 16:
            raise InputError(
                SECRET,
                "must have at least 16 characters",
                remedy="Make one with `openssl rand -hex 32` and give it to the receiver too.",
            )

    @property
    def address(self) -> str:
        """The address without its query, which may hold a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def post(self, event: Event) -> None:
        """Send one event and wait for the answer; blocks for at most some seconds.

        Raises
        ------
        DeliveryError
            If the answer is not a success, or none comes.
        """
        body = json.dumps(body_of(event), sort_keys=True).encode()
        parts = urlsplit(self.url)
        assert parts.hostname
        if parts.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(
                "POST",
                target,
                body,
                {
                    "Content-Type": "application/json",
                    "User-Agent": "relayd",
                    "Relayd-Event": str(event.id),
                    SIGNATURE: signature(self.secret, body, int(time.time())),
                },
            )
            answer = connection.getresponse()
            answer.read(MOST_ANSWER_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise DeliveryError(f"{self.address} can't be reached ({reason})") from None
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            raise DeliveryError(f"{self.address} answered {answer.status}")


def body_of(event: Event) -> dict[str, Any]:
    """Return an event as receivers read it; keys may be added."""
    return {
        "id": event.id,
        "at": utc_text(event.at_s),
        "kind": event.kind,
        "subject": event.subject,
        "detail": event.detail,
    }


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Return the value of the signature's header."""
    digest = hmac.new(secret.encode(), b"%d.%s" % (at_s, body), hashlib.sha256).hexdigest()
    return f"t={at_s},v1={digest}"


def retry_s(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    doubled: float = FIRST_RETRY_S * 2.0 ** min(failures - 1, 30)
    return min(MOST_RETRY_S, doubled)

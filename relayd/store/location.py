"""Where a store is: the path of a file, or the address of a server."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from platformdirs import user_data_path

_SCHEME = r"(?i)[a-z][a-z0-9+.-]*://"
_CONCEALED = r"(?i)([?&](?:[^=&#]*(?:pass|secret|token)[^=&#]*)=)[^&#]*"


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """The address of a server, ``postgresql://user:password@host/database``.

    It is shown without the password.
    """

    _url: str

    @property
    def scheme(self) -> str:
        """The part before ``://``, in lower case."""
        return self._url.partition("://")[0].lower()

    def reveal(self) -> str:
        """Return the address with its password, to connect with and never to show."""
        return self._url

    def __str__(self) -> str:
        scheme, _, rest = re.sub(_CONCEALED, r"\1***", self._url).partition("://")
        # Up to the last @, because the password may hold one, or a slash, if it was not encoded.
        login, at, host = rest.rpartition("@")
        user, colon, _ = login.partition(":")
        authority = re.split("[/?#]", host, maxsplit=1)[0]
        ports = [entry.rpartition("]")[2].partition(":")[2] for entry in authority.split(",")]
        if not all(port == "" or port.isdecimal() for port in ports):
            # Not a port, so a password whose host was left out.
            host = f"{host.partition(':')[0]}:***"
        return f"{scheme}://{user}{colon}{'***' if colon else ''}{at}{host}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


Location: TypeAlias = "Path | Address"


def default_path() -> Path:
    """Return the default location of this user's database; it need not exist."""
    return user_data_path("relayd", appauthor=False) / "relayd.db"


SERVICE_SCHEMES = frozenset({"http", "https"})
"""Schemes of services, which have a store of their own."""


def address_in(written: str | Path | Address) -> Address | None:
    """Return the address that a user wrote; None for the path of a file."""
    if isinstance(written, Address):
        return written
    if isinstance(written, str) and re.match(_SCHEME, written):
        return Address(written)
    return None


def parse_location(written: str | Path | Address, folder: Path | None = None) -> Location:
    """Return the location that a user wrote; a relative path starts from the folder.

    An address has a scheme (``postgresql://...``); everything else is the path of a file.
    """
    return address_in(written) or (folder or Path()) / str(written)


def shown(location: Location | str) -> str:
    """Return a location as messages show it: without a password, and paths as `pathlib` does."""
    return str(Path(location) if isinstance(location, str) else location)


def is_loopback(host: str) -> bool:
    """Return whether a host is surely this machine: any other name may lead elsewhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

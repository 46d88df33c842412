"""Failures of PostgreSQL, turned into errors that say what to do."""

from __future__ import annotations

import psycopg

from planner.model.errors import StoreError
from relayd.store.failures import FREE_SPACE, busy, failure, reason
from relayd.store.location import Address

# Codes are those of https://www.postgresql.org/docs/15/errcodes-appendix.html.
_LOST = ("57P01", "57P02", "57P03", "57P05", "25P03")
_BUSY = ("55P03", "40P01", "40001", "55006")


class SilentServerError(psycopg.OperationalError):
    """A server that owed an answer and sent nothing for too long; the connection is closed."""


def unreachable(address: Address, error: BaseException) -> StoreError:
    """Return the error for a server that does not let us in."""
    return failure(
        address,
        f"can't be connected to: {reason(error)}",
        "Check that the server runs and takes connections from here, and the user, password and "
        "database in the address.",
    )


def lost(address: Address) -> StoreError:
    """Return the error for a connection that broke."""
    return failure(
        address,
        "has closed the connection, or can't be reached any more",
        "Nothing was stored in part. Run this again: the next attempt connects anew.",
    )


def silent(address: Address, error: psycopg.Error) -> StoreError:
    """Return the error for a server that owes an answer; the connection was given up."""
    return failure(
        address,
        f"has stopped answering ({reason(error)})",
        "Look whether the server hangs or is overloaded. Nothing was stored in part. Run this "
        "again: the next attempt connects anew.",
    )


def unknown(address: Address) -> StoreError:
    """Return the error for a connection that broke while a change was being confirmed."""
    return failure(
        address,
        "broke off while it confirmed a change, and could not be asked since what became of it",
        "The change was stored whole or not at all. Run this again when the server is back: a "
        "sample that is there already is not stored twice.",
    )


def abandoned(address: Address) -> StoreError:
    """Return the error for a commit after a statement that failed."""
    return failure(
        address, "has refused a part of this change, so none of it was stored", "Run this again."
    )


def translated(address: Address, error: psycopg.Error, *, broken: bool) -> Exception:
    """Turn an error of the driver into one that says what to do.

    Broken constraints, wrong values and mistakes of our own are not the database's fault: they
    are returned as they are.

    Parameters
    ----------
    broken : bool
        Whether the connection is of no more use.
    """
    if isinstance(error, SilentServerError):
        return silent(address, error)
    code = error.sqlstate or ""
    if broken or code in _LOST or code.startswith("08"):
        return lost(address)
    if code in _BUSY:
        return busy(address)
    if code == "57014":
        return failure(
            address,
            "took too long to answer",
            "Try again when it is less busy, or allow more: "
            "?options=-c%20statement_timeout%3D600s in the address.",
        )
    if code == "53100":
        return failure(address, "can't grow: the disk of the server is full", FREE_SPACE)
    if code.startswith("53"):
        return failure(address, f"is short of resources: {reason(error)}", "Try again in a while.")
    if code == "25006":
        return failure(
            address,
            "can't be written: this connection or server is read-only",
            "Name the primary server; ?target_session_attrs=read-write finds it among several.",
        )
    if code == "42501":
        return failure(
            address,
            f"refuses: {reason(error)}",
            "Let its owner grant what is missing, such as CREATE on the schema and the tables.",
        )
    if code.startswith(("XX", "58")):
        return failure(
            address,
            f"is damaged or in trouble: {reason(error)}",
            "Look into the log of the server; restore a backup if need be.",
        )
    if code.startswith(("22", "23")) or not isinstance(
        error, (psycopg.OperationalError, psycopg.InternalError, psycopg.ProgrammingError)
    ):
        return error
    if code in ("42P01", "42703", "3F000"):
        return failure(
            address,
            f"does not hold what a relayd database should: {reason(error)}",
            "Restore it from a backup, or name another database; it was left as it is.",
        )
    return error

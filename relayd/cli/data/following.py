"""``relayd transfers follow``: run rclone at the rate that its transfer is told, and report it."""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import signal
import sys
from base64 import b64encode
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from socket import socket
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Event, Thread
from time import monotonic
from typing import Any

from planner.fields.kinds import MOST_NAME
from planner.model.errors import InputError, RelaydError, StoreError
from planner.model.units import BYTES_PER_GB, volume_text
from relayd.cli.data.transfers import learn, opened_register
from relayd.transfers.register import VOLUME_ROUNDING
from relayd.transfers.tracked import TrackedTransfer

ASK_EVERY_S, LOOK_EVERY_S = 2.0, 0.5
"""What rclone has moved is looked at more often: what it says last before it exits is reported."""
ANSWER_WITHIN_S = 5.0
END_WITHIN_S = 60.0
"""For the report of the end, where the service does not answer."""


class Rclone:
    """A running rclone, by its remote control (https://rclone.org/rc/).

    Raises InputError if the command is not rclone's, can't be run, or has options of --rc.
    """

    def __init__(self, command: Sequence[str], bytes_per_s: int) -> None:
        if not command or Path(command[0]).stem != "rclone":
            remedy = "Another program can ask for its rate: `GET /v1/transfers/{id}/rate`."
            raise InputError("command", "is not rclone", value=command[:1], remedy=remedy)
        if any(re.match(r"--rc(-|=|$)", word) for word in command):
            remedy = "Leave them out: its remote control sets its limit."
            raise InputError("command", "has options of --rc", remedy=remedy)
        with socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        # Not --rc-no-auth: any user of the machine could then run commands as this one. A password
        # in the environment is not seen by others, as the words of a command are.
        password, self._limit = secrets.token_urlsafe(), bytes_per_s
        login = b64encode(f"relayd:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        control = "--rc", f"--rc-addr=127.0.0.1:{self._port}", f"--bwlimit={bytes_per_s}B"
        try:
            self.process = Popen(  # noqa: S603 - the user's own command
                [command[0], *control, *command[1:]],
                env={**os.environ, "RCLONE_RC_USER": "relayd", "RCLONE_RC_PASS": password},
                stderr=PIPE,
            )
        except OSError as error:
            problem = f"can't be run ({error.strerror})"
            raise InputError("command", problem, value=command[0]) from None
        self.last_line = ""
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()

    def limit_to(self, bytes_per_s: int) -> None:
        """Change its limit."""
        if bytes_per_s != self._limit and self._call("core/bwlimit", rate=f"{bytes_per_s}B"):
            self._limit = bytes_per_s

    def moved_gb(self) -> tuple[float, float]:
        """Return the GB that it has moved, and those in all; zeros where it does not say."""
        said = self._call("core/stats") or {"bytes": 0, "totalBytes": 0}
        return said["bytes"] / BYTES_PER_GB, said["totalBytes"] / BYTES_PER_GB

    def _call(self, path: str, **body: str) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_WITHIN_S)
        try:
            connection.request("POST", f"/{path}", json.dumps(body), self._headers)
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        except (OSError, HTTPException, ValueError):  # it has not begun, or has exited
            return None
        finally:
            connection.close()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()
            if text := re.sub(r"^[\d/]+ [\d:.]+ ", "", line.decode(errors="replace")).strip():
                self.last_line = text  # without its time


class Follower:
    """Tells rclone the rate of its transfer, and the register what rclone has moved."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options, self._said, self._signalled = options, set[str](), Event()
        self._moved_gb = self._whole_gb = 0.0
        with opened_register(options, "write", ANSWER_WITHIN_S) as register:
            told = register.transfer_rate(options.id)
            self._of = register.transfer_details(options.id).transfer
        self._rclone = Rclone(options.words, told.bytes_per_s)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._pass_on)

    def run(self) -> int:
        """Follow rclone until it exits; return its exit code, as a shell has it."""
        every_s = min(ASK_EVERY_S, self._of.silent_after_s / 3)
        asked_s = monotonic()
        while True:
            try:
                code = self._rclone.process.wait(min(LOOK_EVERY_S, every_s))
                self._rclone.reader.join(LOOK_EVERY_S)  # a child of it may keep the pipe
                return code if code >= 0 else 128 - code
            except TimeoutExpired:
                moved_gb, whole_gb = self._rclone.moved_gb()
            self._moved_gb, self._whole_gb = (
                max(self._moved_gb, moved_gb),
                whole_gb or self._whole_gb,
            )
            if monotonic() - asked_s >= every_s:
                asked_s = monotonic()
                try:
                    with opened_register(self._options, "write", ANSWER_WITHIN_S) as register:
                        register.report_transfer(self._of.id, self._arrived_gb(self._moved_gb))
                        told = register.transfer_rate(self._of.id)
                    self._rclone.limit_to(told.bytes_per_s)
                except RelaydError as error:
                    self._say(f"{error} rclone goes on at the rate that was told last.")

    def end(self, code: int) -> TrackedTransfer | None:
        """Report the end, for a while again where nothing answers; a signal ends that."""
        self._signalled.clear()
        until_s = monotonic() + END_WITHIN_S
        moved_gb = self._moved_gb if code else max(self._moved_gb, self._whole_gb)
        state, said = "finished", dict[str, Any](moved_gb=self._arrived_gb(moved_gb))
        if code:
            line = self._rclone.last_line or f"rclone exited with {code}"
            state, said["problem"] = "failed", line[:MOST_NAME].replace("\0", "")
        while True:
            try:
                with opened_register(self._options, "write", ANSWER_WITHIN_S) as register:
                    return register.end_transfer(self._of.id, state, **said)
            except RelaydError as error:
                self._say(str(error))
                passes = isinstance(error, StoreError) and monotonic() < until_s
                if not passes or self._signalled.wait(ASK_EVERY_S):
                    return None

    def _arrived_gb(self, moved_gb: float) -> float:
        """Add what had arrived before; no more than the transfer's volume is reported."""
        found_gb, most_gb = self._of.moved_gb + moved_gb, self._of.volume_gb
        if found_gb > most_gb * (1 + VOLUME_ROUNDING):
            most = f"the {volume_text(most_gb)} of the transfer"
            self._say(f"rclone moves more than {most}, which are reported.")
        return min(found_gb, most_gb)

    def _pass_on(self, number: int, _frame: object) -> None:
        self._rclone.process.send_signal(number)
        self._signalled.set()

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            print(f"relayd: {text}", file=sys.stderr)


def follow(options: argparse.Namespace) -> int:
    """Run rclone for a transfer, which ends with it; return its exit code."""
    follower = Follower(options)
    code = follower.run()
    if ended := follower.end(code):
        learn(options, ended)
    return code

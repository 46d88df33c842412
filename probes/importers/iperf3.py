"""iperf3's JSON output (``-J``), of one or many streams, of the client or the server.

The figure of a TCP test is the steady rate at the receiver: the median of the intervals after the
transient where there are enough (:mod:`.rates`), else what the receiver counted
over the whole test. Intervals are the receiver's where the file has them; the sender's stand in
only if the totals of both sides agree, because bytes in a send buffer have arrived nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from planner.model.errors import FormatError
from probes.importers.iperf3_errors import explained
from probes.importers.iperf3_result import samples
from probes.importers.json_documents import Noise, documents, field, text_field
from probes.importers.options import ImportedRow, ImportOptions
from probes.samples import Skipped

NOISE = ("warning: ", "iperf3: ")
BETWEEN_DOCUMENTS = "text of iperf3 between its JSON documents"
SAME_TEST_AGAIN = "the same test again (iperf3 3.16 and 3.17 write some documents twice)"


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each test in the file."""
    return rows_of(_tests(source, options.name), options)


def rows_of(
    tests: Iterable[tuple[int, dict[str, Any] | str]], options: ImportOptions
) -> Iterator[ImportedRow]:
    """Yield the samples of tests: their documents by line, or reasons to leave them out."""
    cookies: set[str] = set()
    host = ""
    for line, test in tests:
        if isinstance(test, str):
            yield Skipped(line, test)
            continue
        cookie = text_field(test, "start", "cookie")
        if cookie and cookie in cookies:
            yield Skipped(line, SAME_TEST_AGAIN)
            continue
        cookies.add(cookie)
        if "error" in test:
            yield Skipped(line, explained(test["error"]))
            continue
        peer = _peer(test)
        if host and peer and peer != host and not options.force:
            raise FormatError(
                options.name,
                f"holds tests with several hosts ({host}; line {line}: {peer}), but "
                "one --src and one --dst were stated",
                remedy="Import one file per pair of regions; --force if both are the same region.",
            )
        host = host or peer
        yield from samples(line, test, options)


def _tests(source: Iterator[bytes], name: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield each test as one object, and a reason for each line to leave out.

    With ``--json-stream`` (since 3.17) a test is a line of JSON an event; they are put together
    to what ``-J`` would have written.
    """
    begun, test = 0, dict[str, Any]()
    for item in documents(source, name, NOISE):
        if isinstance(item, Noise):
            yield item.line, BETWEEN_DOCUMENTS
            continue
        line, content = item
        if "event" not in content:
            if "start" not in content and "error" not in content:
                raise FormatError(
                    name,
                    f"line {line} begins a JSON document that is not of iperf3",
                    remedy="Give the output of `iperf3 -c HOST -J`.",
                )
            yield line, content
            continue
        event, data = content["event"], content.get("data")
        if event == "start":
            if begun:
                _refuse_unfinished(name, begun)
            begun, test = line, {"start": data, "intervals": []}
        elif event == "interval" and begun:
            test["intervals"].append(data)
        elif event == "error":
            yield begun or line, {**test, "error": data}
            begun, test = 0, {}
        elif event == "end" and begun:
            yield begun, {**test, "end": data}
            begun, test = 0, {}
    if begun:
        _refuse_unfinished(name, begun)


def _refuse_unfinished(name: str, line: int) -> None:
    raise FormatError(
        name,
        f"the test that begins on line {line} has no end",
        remedy="The run was killed, or iperf3 was restarted into the same file: run it again.",
    )


def _peer(test: dict[str, Any]) -> str:
    for side in ("connecting_to", "accepted_connection"):
        if isinstance(field(test, "start", side), dict):
            return text_field(test, "start", side, "host")
    return ""

"""Texts and bytes that are nearly right, and texts that should never be trusted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

HOSTILE = (
    "",
    " ",
    "<script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "\"'><svg/onload=window.ran=1>",
    "javascript:window.ran=1",
    "{{7*7}}${7*7}<%=7*7%>",
    "\u202eus-east\u202c",
    "a\u0000b",
    "\x1b[2J\x1b]0;x\x07",
    "=cmd|'/C calc'!A0",
    "\ud83d\ude00" * 40,
    "\U0001f469\u200d\U0001f4bb e\u0301\u0327",
    "\ufeff\u200b\u2028\u2029",
    "' OR 1=1; DROP TABLE samples;--",
    "../../../etc/passwd",
    "%00%0d%0aX-Injected: 1",
    "a" * 5000,
    "aws:" + "b" * 300,
    "__proto__",
    "constructor",
    "toString",
    "null",
    "undefined",
    "[object Object]",
)
NUMBERS = (
    *(
        "0",
        "-0",
        "-1",
        "1e999",
        "-1e999",
        "1e-999",
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "0x10",
        "1_0",
    ),
    *("9" * 20, "9" * 400, "1e308", "5e-324", "0.1", "1.", ".5", "+3", "1,5", "true", "null", '""'),
    *("2147483648", "9223372036854775808", "1700000000", "253402300800", "-62135596801"),
)
_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z][\w:.-]{2,}")
_JUNK = b'\x00\x01\x1b\x7f\x80\xc3\x28\xed\xa0\x80\xff"\\,;:{}[]()=<>\n\r\t #%&+-_0129eE.aZ'


def mutated(content: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """Return content with one to five changes; pieces of others get into it."""
    for _ in range(chance.randint(1, 5)):
        content = chance.choice(_CHANGES)(content, others, chance)
    return content


def _number(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    return _replaced(_NUMBER, content, chance.choice(NUMBERS).encode(), chance)


def _word(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    text = chance.choice(HOSTILE).encode("utf-8", "surrogatepass")
    return _replaced(_WORD, content, text, chance)


def _swapped_words(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    found = _WORD.findall(content[:100_000])
    return _replaced(_WORD, content, chance.choice(found), chance) if found else content


def _bytes(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.choice(_JUNK)
    return bytes(changed)


def _cut(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(content, chance)
    return content[:start] + content[end:]


def _repeated(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:end] * chance.choice((1, 2, 50)) + content[end:]


def _spliced(content: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    other = chance.choice(others)
    start, end = _span(content, chance)
    first, last = _span(other, chance)
    return content[:start] + other[first:last] + content[end:]


def _lines(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    lines = content.split(b"\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    if chance.random() < 0.5:
        lines.insert(a, lines[b])
    return b"\n".join(lines)


def _ended(content: bytes, _others: Sequence[bytes], chance: Random) -> bytes:
    return content[: chance.randint(0, len(content))]


_CHANGES = (
    *(_number,) * 4,
    *(_word,) * 2,
    *(_swapped_words, _bytes, _cut, _repeated, _spliced, _lines, _ended),
)


def _span(content: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randint(0, len(content))
    return start, min(len(content), start + chance.choice((1, 8, 64, 512)))


def _replaced(pattern: re.Pattern[bytes], content: bytes, by: bytes, chance: Random) -> bytes:
    found = list(pattern.finditer(content[:100_000]))
    if not found:
        return content
    one = chance.choice(found)
    return content[: one.start()] + by + content[one.end() :]

"""Texts and bytes that are nearly right, and texts that should never be trusted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

HOSTILE = (
    *("", " ", "__proto__", "constructor", "toString", "null", "undefined", "[object Object]"),
    *("<script>window.ran=1</script>", "<img src=x onerror=window.ran=1>"),
    *("\"'><svg/onload=window.ran=1>", "javascript:window.ran=1", "{{7*7}}${7*7}<%=7*7%>"),
    *("\u202eus-east\u202c", "a\u0000b", "\x1b[2J\x1b]0;x\x07", "=cmd|'/C calc'!A0"),
    *("\ud83d\ude00" * 40, "\U0001f469\u200d\U0001f4bb e\u0301\u0327", "\ufeff\u200b\u2028\u2029"),
    *("' OR 1=1; DROP TABLE samples;--", "../../../etc/passwd", "%00%0d%0aX-Injected: 1"),
    *("a" * 5000, "aws:" + "b" * 300),
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
_NUMBERS = [number.encode() for number in NUMBERS]
_LOOKED_AT = 100_000
_JUNK = b'\x00\x01\x1b\x7f\x80\xc3\x28\xed\xa0\x80\xff"\\,;:{}[]()=<>\n\r\t #%&+-_0129eE.aZ'


Change = Callable[[bytes, Sequence[bytes], Random], bytes]


def mutated(content: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """Return content with one to five changes; pieces of others get into it."""
    for _ in range(chance.randint(1, 5)):
        content = chance.choice(_CHANGES)(content, others, chance)
    return content


def in_header(text: str) -> str:
    """Return a text as far as a header of HTTP can have it."""
    sent = text.encode("utf-8", "surrogatepass").decode("latin-1")
    return "".join(c for c in sent if c not in "\r\n\0")


def _word(content: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    """Replace a word by a hostile one, or by another of the content."""
    words = [text.encode("utf-8", "surrogatepass") for text in HOSTILE]
    return _replaced(_WORD, content, words + _WORD.findall(content[:_LOOKED_AT]), chance)


def _bytes(content: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    changed = bytearray(content)
    for _at in range(chance.randint(1, 8) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.choice(_JUNK)
    return bytes(changed)


def _repeated(content: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(content, chance)
    return content[:end] + content[start:end] * chance.choice((1, 2, 50)) + content[end:]


def _spliced(content: bytes, others: Sequence[bytes], chance: Random) -> bytes:
    """Put a piece of another in place of one, or of nothing."""
    other = chance.choice([*others, b""])
    (start, end), (first, last) = _span(content, chance), _span(other, chance)
    return content[:start] + other[first:last] + content[end:]


def _lines(content: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    lines = content.split(b"\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    if chance.random() < 0.5:
        lines.insert(a, lines[b])
    return b"\n".join(lines)


_CHANGES: tuple[Change, ...] = (
    *(lambda content, _, chance: _replaced(_NUMBER, content, _NUMBERS, chance),) * 4,
    *(_word,) * 3,
    *(_bytes, _repeated, *(_spliced,) * 2, _lines),
    lambda content, _, chance: content[: chance.randint(0, len(content))],
)


def _span(content: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randint(0, len(content))
    return start, min(len(content), start + chance.choice((1, 8, 64, 512)))


def _replaced(
    pattern: re.Pattern[bytes], content: bytes, by: Sequence[bytes], chance: Random
) -> bytes:
    found = list(pattern.finditer(content[:_LOOKED_AT]))
    if not found:
        return content
    one = chance.choice(found)
    return content[: one.start()] + chance.choice(by) + content[one.end() :]

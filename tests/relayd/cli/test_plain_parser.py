"""Plain command lines mean the same, whichever parser reads them."""

from __future__ import annotations

import textwrap
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from planner.transfer.request import TransferRequest
from relayd.cli.flags import flags
from relayd.cli.parser import parse
from relayd.cli.plain_parser import plain_options
from relayd.cli.questions.asking import options_of
from relayd.cli.text import WIDTH, filled

OPTIONS = [option for option, _ in options_of(TransferRequest)]
OTHERS = ["--json", "--db", "--ca", "--catalogue", "--emit", "--endpoint", "--port", "--help", "-x"]
names = st.sampled_from([name for option in [*OPTIONS, *OTHERS] for name in flags(option)])
values = st.one_of(
    st.sampled_from(["us-east", "500GB", "", "a=b", "-5GB", "--", "-", "--json", "1 TB"]),
    st.text(max_size=3),
)
words = st.one_of(names, values, st.builds("{}={}".format, names, values))


def meaning(options: Any) -> dict[str, Any]:
    """Return what options say; each parser has its own way to call the handler."""
    return {name: value for name, value in vars(options).items() if name != "run"}


@given(st.lists(words, max_size=8))
def test_plain_command_lines_mean_the_same(line: list[str]) -> None:
    if (plain := plain_options(line)) is not None:
        assert meaning(plain) == meaning(parse(["plan", *line]))


@given(st.lists(st.sampled_from(OPTIONS), max_size=6), st.lists(st.sampled_from(["a", "b"])))
def test_known_options_with_values_are_plain(options: list[str], regions: list[str]) -> None:
    line = [word for option in options for word in (option, "1")]
    flagged = {"--frontier"}
    line = [w for i, w in enumerate(line) if not (w == "1" and line[i - 1] in flagged)]
    assert plain_options([*regions, *line]) is not None


def test_what_is_wrong_is_left_to_the_parser() -> None:
    for line in (["--volum", "1"], ["--volume"], ["--help"], ["--json=1"], ["--db", "--json"]):
        assert plain_options(line) is None
        try:
            parse(["plan", *line])
        except (InputError, SystemExit):
            continue
        raise AssertionError(line)


@given(
    st.text(st.sampled_from("ab-\t\n\v\f\r  ") | st.characters(categories=["L", "P"])),
    st.integers(0, 4).map(" ".__mul__),
)
def test_paragraphs_are_filled_as_textwrap_does(words: str, indent: str) -> None:
    for text in (words, " ".join([words] * 9), f"{words * 60} {words}"):
        assert filled(text, indent) == textwrap.fill(
            text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )

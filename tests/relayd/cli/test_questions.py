"""One specification a question: command line, signature and schema have its fields, no others."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from planner.broadcast.request import BroadcastRequest
from planner.fields.specified import Specified, fields_of, schema_of
from planner.model.errors import InputError, RelaydError
from planner.transfer.request import TransferRequest
from relayd.cli.questions.options import add_fields, request_from
from relayd.cli.running import _document
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS, question_of
from relayd.sources.wan import Wan
from tests.planner.test_fields import Wider

each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.name)


def worded(error: RelaydError, request: Any, renamed: Mapping[str, str] = {}) -> str:
    """Return an error's text, as a command that asks a question prints it."""
    return str(_document(error, request, renamed)["detail"])


def parser_of(request: type[Specified]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_fields(parser, request)
    return parser


def asked(request: type[Specified], *words: str) -> Any:
    return request_from(parser_of(request).parse_args(words), request)


@each_question
def test_surfaces_have_the_fields_of_the_specification(question: Question) -> None:
    fields = fields_of(question.request).values()
    options = {
        name
        for action in parser_of(question.request)._actions
        for name in (action.option_strings or [action.dest])
        if name not in {"--help", "by_position"} and not re.fullmatch("-.", name)
    }
    assert options == {field.option for field in fields if field.option}
    for field in fields:
        assert field.option or field.deprecated or field.name == "regions"
    signature = inspect.signature(getattr(Wan, question.method))
    assert next(iter(signature.parameters)) == "self"
    assert set(signature.parameters) - {"self"} == {field.name for field in fields}
    assert set(schema_of(question.request)["properties"]) == {field.key for field in fields}
    documentation = inspect.getdoc(getattr(Wan, question.method)) or ""
    for field in fields:
        assert f"\n{field.name} : " in documentation


@each_question
def test_examples_are_valid(question: Question) -> None:
    request = question.request.from_json(question.example)
    assert question_of(request) is question
    json.dumps(request.to_json(), allow_nan=False)


def test_options_are_read_as_written_and_settings_fill_in(
    tmp_path: Path, environment: MutableMapping[str, str]
) -> None:
    (tmp_path / "config.toml").write_text("vms = 3\nmargin = '20%'\n")
    environment["RELAYD_CONFIG"] = str(tmp_path / "config.toml")
    one = partial(asked, TransferRequest, "a", "b")
    assert one("--vms", "c=2") == TransferRequest("a", "b", vms=3, vms_in={"c": 2}, margin=0.2)
    assert one("--vms", "5", "--margin", "0.3").vms == 5
    many = one(
        *("--avoid", "x", "--avoid", "y"),
        *("--month-to-date", "40TB", "--month-to-date", "aws=1TB"),
    )
    assert many.avoid == ("x", "y")
    assert many.month_to_date_gb == {"*": 40_000.0, "aws": 1000.0}
    for words, field in (
        (["--volume", "5"], "volume_gb"),
        (["--vms", "c=d"], "vms_in c"),
        (["--vm-type", "x"], "vm_types"),
        (["--month-to-date", "1TB", "--month-to-date", "2TB"], "month_to_date_gb"),
    ):
        with pytest.raises(InputError) as caught:
            one(*words)
        assert caught.value.field == field
        assert worded(caught.value, TransferRequest).startswith(words[0])


def test_regions_may_be_given_by_position() -> None:
    assert asked(TransferRequest, "a", "b", "--vms", "2") == TransferRequest("a", "b", vms=2)
    assert asked(TransferRequest, "a", "--dst", "b") == TransferRequest("a", "b")
    assert asked(BroadcastRequest, "a", "b", "c") == BroadcastRequest("a", ["b", "c"])
    # One more field of a specification is an option, too.
    assert asked(Wider, "a", "b", "--shades-of-grey", "9").shades_of_grey == 9
    assert question_of(Wider("a", "b")).name == "transfer"
    for words, said in (
        (["a", "b", "c"], "c is one word too many"),
        (["a", "--src", "b"], "--src is given twice"),
        (["a"], "Missing dst"),
    ):
        with pytest.raises(InputError, match=said):
            asked(TransferRequest, *words)


def test_errors_name_options_on_the_command_line_alone() -> None:
    error = InputError("volume_gb", "is too much", remedy="Raise `vms` or lower `volume_gb`.")
    assert worded(error, TransferRequest) == (
        "--volume is too much. Raise --vms or lower --volume."
    )
    assert worded(error, TransferRequest, {"volume_gb": "--size"}).startswith("--size is ")
    assert worded(error, None) == str(error)


def test_a_deadline_may_be_a_time_of_day() -> None:
    """A time that has passed today is tomorrow's."""
    now = datetime.now(UTC).astimezone()
    for hours in (2, 23):
        then = now + timedelta(hours=hours)
        left_s = (then.replace(second=0, microsecond=0) - now).total_seconds()
        request = asked(TransferRequest, "us-east", "sa", "--deadline", f"{then:%H:%M}")
        assert request.deadline_s == pytest.approx(left_s, abs=5)
    with pytest.raises(InputError, match="25:00"):
        asked(TransferRequest, "us-east", "sa", "--deadline", "25:00")
    assert asked(TransferRequest, "us-east", "sa", "--deadline", ".5h").deadline_s == 1800.0
    with pytest.raises(InputError, match="a time of day such as"):
        asked(TransferRequest, "us-east", "sa", "--deadline", "tomorrow")


def test_json_has_the_other_regions_that_a_name_fits(wan: Wan) -> None:
    plan = wan.plan("us-east", "aws:sa-east-1", volume_gb=1).model_dump("json")
    (one,) = plan["resolutions"]
    assert (one["name"], one["region_id"]) == ("us-east", "aws:us-east-1")
    assert {"azure:eastus", "gcp:us-east4"} <= set(one["others"])
    assert one["note"] in plan["warnings"]

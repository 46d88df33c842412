"""Questions are found by entry points, and a plug-in that is wrong is named with its error."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from probes.plugins import RegistrationError, registered
from relayd.questions import asking
from relayd.questions.question import Question
from relayd.questions.registry import GROUP, QUESTIONS, UNIQUE
from tests.module_graph import ROOT

OURS = tuple(entry_points(group=GROUP))


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_lists_have_our_questions_in_the_order_of_the_documentation() -> None:
    assert [question.method for question in registered(GROUP, Question, UNIQUE, OURS)] == [
        *("plan", "shuffle", "broadcast", "schedule"),
        *("place_reduce", "place_tasks", "compare_candidates", "replan"),
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "relayd.questions.transfer:TRANSFER",
            r"Two entry points of .* have the name 'transfer'.*rename",
        ),
        ("relayd_of_nobody:QUESTION", r"more = relayd_of_nobody:QUESTION.*can't be loaded.*No mod"),
        ("relayd.questions.registry:GROUP", r"is no Question, but 'relayd.questions'"),
    ],
)
def test_a_plug_in_that_is_wrong_is_named(value: str, said: str) -> None:
    with pytest.raises(RegistrationError, match=said):
        registered(GROUP, Question, UNIQUE, [*OURS, point("more", value)])


def test_a_tree_that_was_not_installed_says_how_to() -> None:
    with pytest.raises(RegistrationError, match="pip install --editable"):
        registered(GROUP, Question, UNIQUE, [])


def test_the_stub_has_the_methods_of_our_questions() -> None:
    stub = ast.parse((ROOT / "relayd/questions/asking.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            make = {"Asking": "_method", "AskingAsync": "_coroutine"}[node.name]
            assert [ast.unparse(line) for line in node.body] == [
                f"{one.method} = {make}({one.request.__name__}, {one.answer.__name__})"
                for one in QUESTIONS
            ]
            assert set(vars(getattr(asking, node.name))) >= {one.method for one in QUESTIONS}


def test_printing_an_answer_loads_no_command_line() -> None:
    program = """if True:
        import sys
        import relayd
        wan = relayd.open(relayd.Network.from_matrices(["a:b", "c:d"], [[0, 5], [5, 0]], rtt_ms=9))
        print(wan.plan("a:b", "c:d", volume_gb=10))
        print(*(name for name in sys.modules if name.startswith("relayd.cli")), "loaded")"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    lines = run.stdout.splitlines()
    assert lines[:2] == ["Send it direct.", lines[1]]
    assert lines[1].startswith("a:b -> c:d, 10 GB")
    assert lines[-1].strip() == "loaded"


def test_a_broken_plug_in_ends_commands_with_one_error(tmp_path: Path) -> None:
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nmore = relayd_of_nobody:QUESTION\n")
    run = subprocess.run(
        [sys.executable, "-m", "relayd", "plan", "us-east", "sa"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
    )
    assert run.returncode == 2
    assert run.stderr.startswith("relayd: broken (entry point more = relayd_of_nobody:QUESTION)")
    assert "Traceback" not in run.stderr

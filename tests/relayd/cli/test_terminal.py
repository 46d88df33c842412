"""What people expect of a program in a terminal, on a real one (a pseudo-terminal)."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
from collections import defaultdict
from pathlib import Path

import pytest

from planner.model.errors import InputError
from relayd.cli import text
from relayd.cli.commands import build_parser, parse
from relayd.cli.parser import Parser
from tests.relayd.building import imported
from tests.relayd.cli.conftest import OnTerminal
from tests.relayd.conftest import Relayd

ROOT = Path(__file__).parents[3]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.slow
def test_a_real_terminal_gets_its_width_its_colours_and_a_pager(tmp_path: Path) -> None:
    """Its size is what the kernel says, not what variables say."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 60, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PAGER": f"tee {tmp_path / 'paged'}"}
    for variable in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(variable, None)
    command = [sys.executable, "-m", "relayd", "data", "links"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as run:
        os.close(theirs)
        found = b""
        try:
            while part := os.read(ours, 65536):
                found += part
        except OSError:  # the other end is closed: how Linux says the end of a terminal
            pass
        assert run.wait(60) == 0
    os.close(ours)
    shown = found.decode().replace("\r\n", "\n")
    assert "aws:us-east-1" in shown
    assert "\x1b[" in shown
    assert shown.count("\n") > 100
    assert max(len(ESCAPE.sub("", line)) for line in shown.split("\n")) <= 60
    assert (tmp_path / "paged").read_text() == shown


def test_what_fits_on_the_screen_goes_through_no_pager(
    on_terminal: OnTerminal, tmp_path: Path
) -> None:
    pager = f"tee {tmp_path / 'paged'}"
    assert "sa-east-1" in on_terminal("data regions sa", columns=200, lines=60, PAGER=pager)
    assert not (tmp_path / "paged").exists()


@pytest.mark.parametrize("columns", [60, 120])
def test_nothing_is_wider_than_the_terminal(columns: int, on_terminal: OnTerminal) -> None:
    for line in ("plan us-east sa", "plan us-eest sa", "plan --help", "data vm-types c7gn"):
        shown = on_terminal(line, columns=columns)
        assert max(len(ESCAPE.sub("", line)) for line in shown.split("\n")) <= columns, line


def test_a_table_stays_one_while_its_words_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are put below each other; what still does not fit is a paragraph a row."""
    header, rows = ("path", "long name, Gbit/s"), [("aws:us-east-1 -> aws:sa-east-1", "4.84")]
    whole = [f"{'path':30}  long name, Gbit/s", f"{rows[0][0]}  {'4.84':>17}"]
    assert text.page().table(header, rows).split("\n") == whole
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "49")
    assert text.page().table(header, rows).split("\n") == whole
    monkeypatch.setenv("COLUMNS", "48")
    assert text.page().table(header, rows).split("\n") == [
        f"{'path':29}  long name, Gbit/s",
        f"{'aws:us-east-1 ->':29}  {'4.84':>17}",
        "aws:sa-east-1",
    ]
    for columns in range(21, 48):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = text.page().table(header, rows)
        assert max(map(len, shown.split("\n"))) <= columns
        assert shown.split().count("4.84") == shown.split().count("aws:us-east-1") == 1


def test_colour_is_shown_where_it_is_wanted(on_terminal: OnTerminal) -> None:
    assert "\x1b[1mSend it direct" in on_terminal("plan us-east sa", columns=100)
    assert "\x1b" not in on_terminal("plan us-east sa", columns=100, NO_COLOR="1")
    assert "\x1b" not in on_terminal("plan us-east sa", columns=100, TERM="dumb")


def test_a_matrix_is_tab_separated_on_a_terminal_too(on_terminal: OnTerminal) -> None:
    shown = on_terminal("data matrix --metric rtt", columns=60)
    assert "\x1b" not in shown
    first, *rows = shown.split("\n")
    assert first.split("\t")[0] == "rtt (ms)"
    assert {row.count("\t") for row in rows if row} == {first.count("\t")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "lines", "code"),
    [("data links --format csv | head -n 2", 2, 0), ("help margin >&-", 0, 0), ("plon 2>&-", 0, 2)],
)
def test_readers_that_leave_early_and_closed_streams_are_no_fault(
    words: str, lines: int, code: int
) -> None:
    command = f"{sys.executable} -m relayd {words}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (code, lines, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", ["--help", "data regions"])
def test_what_cannot_be_written_is_said(words: str) -> None:
    command = [sys.executable, "-m", "relayd", *words.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the disk is full" in done.stderr


def test_first_steps(relayd: Relayd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = relayd()
    assert (bare.code, bare.err) == (0, "")
    assert "relayd plan us-east sa" in bare.out
    missing = str(tmp_path / "missing.db")
    assert relayd("data", "links", "--db", missing).err.startswith("relayd: --db does not exist")
    monkeypatch.setenv("RELAYD_DB", missing)
    assert relayd("data", "links").err.startswith("relayd: RELAYD_DB does not exist")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("plon", "plon is not a command of `relayd`. Did you mean plan?"),
        ("plan a b --volum 5", "--volum is not an option of `relayd plan`. Did you"),
        ("--versoin", "Did you mean --version?"),
        ("data store", "relayd: data store needs one of its commands: compact, rebuild, check"),
        ("study series -s sa", "relayd: Missing --dst"),
        ("data links -s us-eest", "relayd: --src is not a known region"),
        ("data matrix --metric luck", "--metric must be one of"),
        ("serve token revoke 1 2", "2 is not an argument of `relayd serve token revoke`"),
        ("data links --src", "--src needs a value"),
        ("data links --src sa --src eu", "--src is given twice (got 'eu')"),
        ("data matrix --metric rtt --db a.db --db b.db", "--db is given twice"),
    ],
)
def test_near_misses_are_named(relayd: Relayd, words: str, says: str) -> None:
    outcome = relayd(*words.split())
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_errors_are_json_where_answers_are(relayd: Relayd) -> None:
    for words in (["plan", "us-eest", "sa", "--json"], ["plan", "us-eest", "sa", "-j"]):
        outcome = relayd(*words)
        assert (outcome.code, outcome.out) == (2, "")
        error = json.loads(outcome.err)["error"]
        assert (error["field"], error["value"], error["exit_code"]) == ("--src", "us-eest", 2)
        assert "us-east" in error["near"]
    assert "--volume" in json.loads(relayd("plan", "-j", "--volum", "5").err)["error"]["remedy"]


def test_help_is_one_screen_and_whole_help_is_asked_for(
    relayd: Relayd, capsys: pytest.CaptureFixture[str]
) -> None:
    def helped(root: Parser, words: str, flag: str) -> str:
        with pytest.raises(SystemExit):
            root.parse([*words.split(), flag])
        return capsys.readouterr().out

    brief, root = build_parser(), build_parser()  # one for each flag: short help cuts its parser
    names = ["plan", "transfers", "import", "data", "probe", "measure", "study", "serve", "help"]
    assert list(root.commands) == names
    for words, parser in root.known.items():
        short, whole = helped(brief, words, "-h"), helped(root, words, "--help")
        assert short.count("\n") <= 41, words
        options = {name for one in parser._actions for name in one.option_strings}
        assert {name for name in options if name not in whole} == set(), words
        assert short == whole or f"`relayd {words} --help` shows all" in short, words
    short = relayd("plan", "-h").out
    assert "--volume SIZE" in short
    assert "(default 100GB)" in short
    assert "--candidates" not in short


@pytest.mark.parametrize("group", ["", "data ", "serve "])
def test_a_command_that_stands_elsewhere_is_named_with_its_place(
    group: str, relayd: Relayd
) -> None:
    said = relayd(*f"{group}shuffle".split())
    assert (said.code, said.err) == (2, "relayd: shuffle is `relayd plan shuffle`.\n")
    several = relayd(*f"{group}backup".split()).err
    assert several == "relayd: backup is `relayd data store backup`.\n"


def test_options_stand_after_any_word(relayd: Relayd) -> None:
    usual = relayd("plan", "us-east", "sa", "--volume", "5GB", "--connections", "16", "--json")
    for words in (
        ["--volume", "5GB", "us-east", "-n", "16", "sa", "-j"],
        ["us-east", "--volume=5GB", "-n16", "-j", "sa"],
        ["-s", "us-east", "-d", "sa", "-n", "16", "-j", "--volume", "5GB"],
    ):
        assert relayd("plan", *words).out == usual.out
    assert relayd("plan", "us-east", "--volume", "-5GB", "sa").err.startswith("relayd: --volume")
    for words in (
        ["set", "link", "a", "b", "state=down", "--name", "x"],
        ["set", "link", "--name", "x", "a", "b", "state=down"],
        ["set", "link", "a", "--name", "x", "b", "--one-way", "state=down"],
    ):
        options = parse(["measure", "lab", *words])
        assert (options.name, options.src, options.dst) == ("x", "a", "b")
        assert options.settings == ["state=down"]
    with pytest.raises(InputError, match="--print-completion needs a value"):
        parse(["--print-completion"])


def test_listings_have_the_same_rows_in_every_format(relayd: Relayd, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    listed = json.loads(relayd("data", "links", "--src", "us-east", "--format", "json").out)[
        "links"
    ]
    rows = list(
        csv.DictReader(io.StringIO(relayd("data", "links", "-s", "us-east", "--format", "csv").out))
    )
    assert relayd("data", "links", "-s", "us-east", "-o", str(tmp_path / "links.parquet")).code == 0
    columns = parquet.read_table(tmp_path / "links.parquet").to_pylist()
    assert len(listed) == len(rows) == len(columns) > 5
    for link, row, column in zip(listed, rows, columns, strict=True):
        assert (link["src"], link["dst"]) == (row["src"], row["dst"])
        assert link["rtt_ms"]["expected"] == float(row["rtt_ms"]) == column["rtt_ms"]
        assert link["aggregate_gbps"]["high"] == float(row["aggregate_gbps_high"])
    matrix = list(csv.DictReader(io.StringIO(relayd("data", "matrix", "--format", "csv").out)))
    assert {"src", "dst", "aggregate"} == set(matrix[0])
    assert "needs --output" in relayd("data", "links", "--format", "parquet").err
    refused = relayd("data", "regions", "-o", str(tmp_path / "no" / "such.csv"))
    assert (refused.code, "--output can't be written" in refused.err) == (2, True)


# Completing ends its process, so each line has a child of one that has imported all.
COMPLETING = """
import os, sys
from pathlib import Path
from relayd.__main__ import main
for line in sys.argv[1:]:
    if not os.fork():
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
        main()
    os.wait()
    print(*Path(os.environ["_ARGCOMPLETE_STDOUT_FILENAME"]).read_text().split())
"""


def completed(tmp_path: Path, *lines: str) -> list[list[str]]:
    """Return what a shell is told for each line, by the protocol of argcomplete."""
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "found"),
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_TYPE": "9",
        "_ARGCOMPLETE_IFS": "\n",
    }
    command = [sys.executable, "-c", COMPLETING, *lines]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [found.split() for found in done.stdout.removesuffix("\n").split("\n")]


def test_shells_complete_commands_options_regions_types_and_ids(
    tmp_path: Path, relayd: Relayd
) -> None:
    db = str(tmp_path / "relayd.db")
    row = "aws:us-east-1,aws:sa-east-1,2026-11-20,115"
    imported(Path(db), "src,dst,measured_at,rtt_ms", row)
    for _ in range(2):
        begin = ("begin", "us-east", "sa", "--volume", "1GB", "--id", "nightly-7", "--db", db)
        assert relayd("transfers", *begin).code == 0
    command, option, region, src, vm_type, *others = completed(
        tmp_path,
        "relayd plan sh",
        "relayd plan --vol",
        "relayd plan us-eas",
        "relayd data links --src eu-w",
        "relayd plan --vm-type aws=c7gn.l",
        "relayd help disp",
        f"relayd transfers show --db {db} nig",
        "relayd transfers show --db http://127.0.0.1:9 nig",
        f"relayd plan us-east sa --db {db} --snapshot 20",
    )
    assert "shuffle" in command
    assert "--volume" in option
    assert "us-east-1" in region
    assert "eu-west-1" in src
    assert "aws=c7gn.large" in vm_type
    assert others[:3] == [["disputed"], ["nightly-7"], []]
    ((snapshot,),) = others[3:]
    assert relayd("plan", "us-east", "sa", "--db", db, "--snapshot", snapshot).code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_by_their_scripts(shell: str, tmp_path: Path, relayd: Relayd) -> None:
    """A line is typed into the real shell, with the key for completion at its end."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell} (apt-get install {shell})")
    command = tmp_path / "relayd"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m relayd "$@"\n')
    command.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(relayd("--print-completion", shell).out)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
        "TERM": "dumb",
        "PS1": "",
    }
    line = "relayd plan gcp:southamerica-west1"
    if shell == "fish":
        asked = ["fish", "--no-config", "-c", f"source {script}; complete -C '{line[:-2]}'"]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
        assert "gcp:southamerica-west1" in done.stdout.split()
        return
    start = {"bash": ["bash", "--norc", "-i"], "zsh": ["zsh", "-f", "-i"]}[shell]
    ready = {"bash": "", "zsh": "autoload -Uz compinit; compinit -u; "}[shell]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        start, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as run:
        os.close(theirs)
        try:
            os.write(ours, f"{ready}source {script}; echo rea''dy\n".encode())
            until(ours, b"\nready")
            os.write(ours, f"{line[:-2]}\t".encode())
            until(ours, line.encode())
        finally:
            run.kill()
    os.close(ours)


def until(terminal: int, wanted: bytes) -> None:
    """Read what appears on a terminal until it has what is wanted."""
    found = b""
    while wanted not in found.replace(b"\r", b""):
        assert select.select([terminal], [], [], 60)[0], found
        found += os.read(terminal, 65536)


def test_terms_and_options_are_explained(relayd: Relayd) -> None:
    assert "window divided by" in relayd("help", "per-flow").out
    assert relayd("help", "aggregate_mbps").out == relayd("help", "aggregate").out
    margin = relayd("help", "--json", "margin").out
    assert "`relayd plan`" in json.loads(margin)["commands"]
    assert relayd("help").out.count("\n") > 20
    assert "Did you mean snapshot?" in relayd("help", "snapshto").err
    folder = Path(__file__).parents[3] / "docs"
    for term in json.loads(relayd("help", "--json").out)["terms"]:
        page, _, anchor = term["page"].partition("#")
        headings = re.findall(r"^#+ (.*)", (folder / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in headings}
        assert not anchor or anchor in anchors, term["page"]


def test_the_doctor_says_what_is_wrong(relayd: Relayd, tmp_path: Path) -> None:
    well = relayd("data", "doctor", "--json")
    assert well.code == 0, well.out
    states = {check["name"]: check["state"] for check in json.loads(well.out)["checks"]}
    assert states["relayd"] == states["disk"] == "ok"
    assert states["knowledge"] == "note"
    broken = tmp_path / "broken.db"
    broken.write_text("not a database")
    ill = relayd("data", "doctor", "--db", str(broken))
    assert ill.code == 4
    assert "problem  store:" in ill.out


def test_every_option_has_one_meaning_for_its_short_flag() -> None:
    meanings = defaultdict[str, set[str]](set)
    for parser in build_parser().known.values():
        for action in parser._actions:
            for flag in action.option_strings:
                if re.fullmatch("-.", flag):
                    meanings[flag].add(action.option_strings[-1])
    assert meanings == {
        "-h": {"-h"},
        "-j": {"--json"},
        "-s": {"--src"},
        "-d": {"--dst"},
        "-n": {"--connections"},
        "-o": {"--output"},
    }

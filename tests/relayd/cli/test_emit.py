"""What is emitted, read and run by the tools it is for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import ceil, isclose
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import relayd
from planner.model.errors import InputError
from planner.transfer.plan import Plan
from relayd.emitting.formats import emit, emitters
from relayd.emitting.lanes import Lane, Vm, emission
from relayd.emitting.uploads import MIB, STORES, part_mib, side_by_side
from relayd.sources.wan import Wan
from tests.ports import free_port
from tests.relayd.conftest import Outcome, Relayd
from tests.shared_data import GRID_VM_TYPES

FORMATS_BY_END = {"aws": {"aws-cli"}, "azure": {"azcopy"}, "gcp": {"gcloud"}}
OF_STORES = set().union(*FORMATS_BY_END.values())
REQUIRED = [
    part.name
    for part in fields(Plan)
    if part.default is MISSING and part.default_factory is MISSING
]
OF_RELAYS = {"haproxy"}
OF_BUCKETS = {"storage-transfer", "datasync", "skyplane"}
ENDS = ("azure:westeurope", "aws:ap-south-1")


def direct(wan: Wan, dst: str = "aws:sa-east-1", **limits: object) -> Plan:
    return wan.plan("aws:us-east-1", dst, relays="none", **{"vms": 1, **limits})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def relay(wan: Wan) -> Plan:
    """A relay alone: beside it, nothing is known of the direct path."""
    links = {src: dict(row) for src, row in wan.network.usual.items()}
    del links[ENDS[0]][ENDS[1]]
    wan = Wan(wan.catalogue, wan.network.with_(links=links))
    asked: dict[str, Any] = {"objective": "time", "margin": 0, "relays": "azure:centralindia"}
    plan = wan.plan(*ENDS, volume_gb=2000, vms=1, **asked)
    assert plan.verdict == "relay"
    return plan


@pytest.fixture(scope="module")
def split(wan: Wan) -> Plan:
    """The direct path beside two relays, of which one has two VMs and the other one."""
    asked: dict[str, Any] = {"objective": "cost", "hosts": "tuned", "vm_types": GRID_VM_TYPES}
    plan = wan.plan(*ENDS, volume_gb=2000, vms=2, min_throughput_gbps=18, **asked)
    assert plan.verdict == "split"
    assert sorted(plan.vms.values()) == [1, 2, 2, 2]
    return plan


def relays_of(plan: Plan) -> tuple[str, str]:
    """Return the relay of a split that has two VMs, and the one that has one."""
    two, one = (path.regions[1] for path in plan.paths if len(path.regions) == 3)
    assert (plan.vms[two], plan.vms[one]) == (2, 1)
    return two, one


@pytest.fixture(scope="module")
def plans(wan: Wan, relay: Plan, split: Plan) -> list[Plan]:
    ends = [direct(wan), direct(wan, "azure:eastus2", vms=2, min_throughput_gbps=8)]
    return [*ends, direct(wan, "gcp:us-east1"), relay, split]


def fitting(plan: Plan) -> list[str]:
    end = plan.request["dst"].partition(":")[0]
    other = OF_STORES - FORMATS_BY_END[end] | OF_BUCKETS
    return [
        f for f in emitters() if f not in other and (plan.verdict != "direct" or f not in OF_RELAYS)
    ]


def run(text: str, folder: Path, *words: str, shell: str = "sh", **variables: str) -> Outcome:
    """Run a script with no variables but these."""
    script = folder / "script"
    script.write_text(text)
    done = subprocess.run(
        [shell, str(script), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
        cwd=folder,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def check_by_shells(scripts: list[Path], *unless: str) -> None:
    """Have each shell, and shellcheck, read scripts; what is not installed reads none."""
    checks: list[list[str | Path]]
    checks = [[shell, "-n", script] for script in scripts for shell in ("dash", "bash")]
    checks.append(["shellcheck", "-s", "sh", *unless, *scripts])
    for check in checks:
        if shutil.which(str(check[0])):
            done = subprocess.run(check, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_shells_read_what_is_emitted(plans: list[Plan], tmp_path: Path) -> None:
    scripts: dict[str, list[Path]] = {"env": [], "script": []}
    for number, plan in enumerate(plans):
        for name in fitting(plan):
            text = emit(plan, name)
            said = " ".join(line.removeprefix("#").strip() for line in text.splitlines())
            for known in (plan.plan_id, plan.snapshot.id, f"USD {plan.cost_usd.total:,.2f}"):
                assert known in said
            assert re.search(r"Predicted: [\d.]+ Gbit/s \([\d.]+ to [\d.]+\)", said)
            assert max(map(len, text.splitlines()[:8])) <= 100
            if name != "haproxy":
                file = tmp_path / f"{number} {name}"
                file.write_text(text)
                scripts["env" if name == "env" else "script"].append(file)
    check_by_shells(scripts["script"])
    check_by_shells(scripts["env"], "-e", "SC2034,SC2209")  # for whoever sources it


def test_haproxy_reads_what_is_emitted(relay: Plan, split: Plan, tmp_path: Path) -> None:
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if haproxy is None:
        pytest.skip("needs haproxy")
    file = tmp_path / "haproxy"
    ends = {f"{end}_{i}": f"10.0.0.{i}" for end in ("SRC", "DST") for i in (1, 2)}
    for plan in (relay, split):
        file.write_text(emit(plan, "haproxy"))
        refused, taken = (
            subprocess.run([haproxy, "-c", "-f", file], capture_output=True, text=True, env=known)
            for known in ({}, ends)
        )
        assert refused.returncode != 0
        assert "set SRC_1: address of" in refused.stderr
        assert taken.returncode == 0, taken.stderr


def test_a_missing_address_stops_the_script_and_is_named(split: Plan, tmp_path: Path) -> None:
    two, _ = relays_of(split)
    # Lanes 1 and 2 are direct.
    for name, role, number, first in (
        ("iperf3", "SRC", "1", "address of VM 1 of 2 in aws:ap-south-1"),
        ("rclone", "LANE", "3", f"address of VM 1 of 2 in {two}"),
    ):
        text = emit(split, name)
        known = {"SOURCE": "x", "DESTINATION": "y"}
        asked = run(text, tmp_path, **known)
        assert asked.code != 0
        assert f"{role}: which" in asked.err
        stopped = run(text, tmp_path, **known, **{role: number})
        assert stopped.code != 0
        assert first in stopped.err
        assert run(text, tmp_path, **known, **{role: "9"}).code == 2


def test_endpoints_take_the_place_of_variables(split: Plan, tmp_path: Path) -> None:
    two, one = relays_of(split)
    given = {
        "azure:westeurope": ["10.1.0.1", "10.1.0.2"],
        two: ("10.2.0.1", "10.2.0.2"),
        one: "10.3.0.1",
        "aws:ap-south-1": ["a.example.com", "b.example.com"],
    }
    for name in OF_RELAYS | {"iperf3", "rclone"}:
        assert ":?address" not in emit(split, name, endpoints=given)
    assert '"b.example.com:5304"' in emit(split, "haproxy", endpoints=given, port=5301)
    assert ".alert" not in emit(split, "haproxy", endpoints=given)
    # One of two is given.
    part = emit(split, "haproxy", endpoints={"aws:ap-south-1": "10.4.0.1"})
    assert ("set DST_2" in part, "set DST_1" in part) == (True, False)
    sourced = emit(split, "env", endpoints={one: "10.3.0.1"})
    told = sourced + 'echo "$RELAYD_VERDICT $RELAYD_LANES $RELAYD_LANE_5_PATH $RELAY_3"\n'
    assert run(told, tmp_path).out == f"split 6 {' '.join((ENDS[0], one, ENDS[1]))} 10.3.0.1\n"
    for end, wrong in (
        ("gcp:us-east1", "10.0.0.1"),
        (one, ["10.0.0.1", "10.0.0.2"]),
        (one, "$(reboot)"),
        (one, "a b"),
        (one, ""),
        (one, "2001:db8::1"),
        ("azure:westeurope", "source.example.com"),
    ):
        with pytest.raises(InputError, match="endpoint"):
            emit(split, "haproxy", endpoints={end: wrong})


def test_lanes_carry_the_plan(plans: list[Plan]) -> None:
    for plan in plans:
        for to_vms in (True, False):
            made = emission(plan, to_vms=to_vms)
            assert isclose(sum(lane.share for lane in made.lanes), 1)
            total = sum(lane.throughput_gbps for lane in made.lanes)
            assert isclose(total, plan.throughput_gbps)
            for path in plan.paths:
                own = [lane for lane in made.lanes if lane.regions == " -> ".join(path.regions)]
                opened = sum(lane.connections for lane in own)
                assert path.connections <= opened < path.connections + len(own)
            # No VM is idle.
            assert {lane.src for lane in made.lanes} == set(made.sources)
            assert {lane.relay for lane in made.relayed} == set(made.relays)
            if to_vms:
                assert {lane.dst for lane in made.lanes} == set(made.destinations)


@pytest.mark.slow
def test_plans_in_any_form_and_nothing_else(wan: Wan, relay: Plan, split: Plan) -> None:
    text = relayd.emit(relay, "haproxy")
    whole = relay.model_dump("json")
    assert emit(whole, "haproxy") == emit(relay.model_dump_json(), "haproxy") == text
    shuffle = wan.shuffle({("aws:us-east-1", "aws:sa-east-1"): 5})
    unfit: list[Any] = ["{", "[]", "3", {}, {"paths": []}, shuffle]
    unfit += [{key: value for key, value in whole.items() if key != left} for left in REQUIRED]
    (path,) = whole["paths"]
    # Written by somebody else: without bounds, a small plan is much work.
    paths: list[dict[str, Any]] = [
        *({"connections": 0}, {"regions": []}, {"connections": 10**30}),
        *({name: v} for name in ("share", "rtt_ms", "throughput_gbps") for v in ("inf", 1e308)),
    ]
    unfit += [whole | {"paths": [path | change]} for change in paths]
    changes: list[dict[str, Any]] = [
        {"snapshot": {}},
        {"paths": []},
        {"paths": [path] * 2},
        {"vms": {}},
        {"vms": dict.fromkeys(whole["vms"], 10**8)},
        {"request": {"volume_gb": "much"}},
        {"request": whole["request"] | {"volume_gb": 10**400}},
        {"throughput_gbps_low": "slow"},
        {"plan_id": "\ud800"},
        {"duration_s": "nan"},
    ]
    unfit += [whole | change for change in changes]
    for wrong in unfit:
        for tool in ("haproxy", "rclone"):
            with pytest.raises(InputError, match="plan"):
                emit(wrong, tool)
    with pytest.raises(InputError, match="haproxy, iperf3"):
        emit(relay, "curl")
    with pytest.raises(InputError, match=r"haproxy, .*socat"):  # as of earlier versions
        emit(relay, "socat")
    with pytest.raises(InputError, match="nothing to relay"):
        emit(direct(wan), "haproxy")
    with pytest.raises(InputError, match="rclone"):
        emit(relay, "gcloud")
    with pytest.raises(InputError, match="port"):
        emit(split, "haproxy", port=65_535)


def test_names_can_not_leave_comments_and_messages(relay: Plan, tmp_path: Path) -> None:
    evil = "a:$(touch evil)`touch evil`\n'}\"; touch evil #"
    content = json.loads(relay.model_dump_json().replace("azure:centralindia", "a:EVIL"))
    text = json.dumps(content).replace("a:EVIL", json.dumps(evil)[1:-1])
    for name in ("iperf3", "rclone", "env"):
        known = {"SOURCE": "x", "DESTINATION": "y", "SRC_1": "z", "DST_1": "z"}
        run(emit(text, name), tmp_path, **{} if name != "env" else known)
        assert not (tmp_path / "evil").exists()
    assert "touch evil" not in re.sub(r"(?m)^ *#.*$|\.alert.*$", "", emit(text, "haproxy"))


@pytest.mark.slow
def test_rclone_copies_each_file_on_one_lane(wan: Wan, split: Plan, tmp_path: Path) -> None:
    if shutil.which("rclone") is None:
        pytest.skip("needs rclone")
    source = tmp_path / "source"
    (source / "inner folder").mkdir(parents=True)
    sizes = {f"inner folder/-{i} ü'$x": 1000 * (i % 13) + i for i in range(40)} | {" first": 0}
    for name, size in sizes.items():
        (source / name).write_bytes(b"x" * size)

    def copied(plan: Plan, **variables: str) -> list[str]:
        end = tmp_path / f"copy{variables.get('LANE', '')}"
        known = {"SOURCE": "source", "DESTINATION": end.name, **variables}
        done = run(emit(plan, "rclone"), tmp_path, **known)
        assert done.code == 0, done.err
        return [str(p.relative_to(end)) for p in end.rglob("*") if p.is_file()]

    # One path and one lane: everything goes at once.
    assert set(copied(direct(wan))) == set(sizes)
    addresses = {f"RELAY_{i}": "192.0.2.1" for i in (1, 2, 3)}
    seen: list[str] = []
    for lane in emission(split, to_vms=False).lanes:
        got = copied(split, LANE=str(lane.number), **addresses)
        seen += got
        carried = sum(sizes[name] for name in got)
        assert abs(carried - lane.share * sum(sizes.values())) <= max(sizes.values())
    assert sorted(seen) == sorted(sizes)


@contextmanager
def empty_bucket() -> Iterator[str]:
    """Serve the listing of an empty bucket."""

    class Listing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<ListBucketResult/>")

    with ThreadingHTTPServer(("127.0.0.1", 0), Listing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.thorough
def test_the_aws_command_line_takes_its_settings(wan: Wan, tmp_path: Path) -> None:
    text = emit(direct(wan), "aws-cli")
    settings = dict(re.findall(r"aws configure set (\S+) (\S+)", text))
    assert settings["s3.max_concurrent_requests"] == "64"
    if shutil.which("aws") is None:
        pytest.skip("needs the AWS command line to go further; settings are there")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("x")
    own = tmp_path / "config"
    own.write_text("[default]\nregion = eu-west-1\n")
    known = {"SOURCE": "source", "DESTINATION": "s3://b/p", "PART": "7MB"}
    known |= {"AWS_CONFIG_FILE": str(own), "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}
    with empty_bucket() as url:
        shown = text.replace("aws s3 sync", 'cat "$AWS_CONFIG_FILE"\naws s3 sync', 1)
        done = run(shown, tmp_path, "--dryrun", **known, AWS_ENDPOINT_URL=url)
    # Nothing was sent, and the check at the end sees it.
    assert (done.code, "not there yet" in done.err) == (1, True), done.err
    assert "(dryrun) upload: source/file to s3://b/p/file" in done.out
    for line in ("region = eu-west-1", "max_concurrent_requests = 64", "multipart_chunksize = 7MB"):
        assert line in done.out
    assert own.read_text() == "[default]\nregion = eu-west-1\n"


@pytest.mark.service
def test_an_iperf3_trial_runs_here(wan: Wan, tmp_path: Path) -> None:
    """The direct plan on loopback; relays move data in tests/lab/end_to_end/test_emit.py."""
    if shutil.which("iperf3") is None:
        pytest.skip("needs iperf3")
    port = free_port()
    plan = direct(wan)
    text = emit(plan, "iperf3", endpoints={"aws:sa-east-1": "127.0.0.1"}, port=port)
    text = text.replace("-O 5", "-O 1")
    refused = run(text, tmp_path, SECONDS_OF_TEST="1")
    assert refused.code == 1
    assert "lane 1 failed" in refused.err
    serve = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert any("listening" in line for line in server.stdout)
        done = run(text, tmp_path, SECONDS_OF_TEST="1")
    assert done.code == 0, done.err
    match = re.fullmatch(r"([\d.]+) Gbit/s, predicted 4.840 \(\d+ %\)\n", done.out)
    assert match, done.out
    assert float(match[1]) > 0.1


@given(st.integers(1, 5000))
def test_files_times_parts_are_the_connections(connections: int) -> None:
    files, parts = side_by_side(connections)
    assert connections <= files * parts <= 1.35 * connections
    assert parts <= files


@given(
    st.floats(1e-3, 1e6),
    st.floats(0.001, 1),
    st.integers(1, 512),
    st.floats(0.01, 30),
    st.floats(1, 400),
    st.sampled_from(sorted(STORES)),
)
def test_parts_keep_to_the_store_and_suffice_for_the_connections(
    volume_gb: float, share: float, connections: int, gbps: float, rtt_ms: float, store: str
) -> None:
    vm = Vm("X_1", "a:b", 1, 1, "")
    lane = Lane(1, vm, None, vm, share, gbps, connections, rtt_ms)
    limits = STORES[store]
    mib = part_mib(lane, volume_gb, limits)
    size = volume_gb * share * 1e9
    assert limits.least_mib <= mib <= limits.most_mib
    count = ceil(size / (mib * MIB))
    if size <= limits.parts * limits.most_mib * MIB:
        assert count <= limits.parts
    # Where the store's limits leave a choice, no connection is without a part.
    if size >= connections * 2 * max(limits.least_mib, 1) * MIB and connections * 8 < limits.parts:
        assert count >= connections


@pytest.mark.slow
def test_the_command_emits(relayd: Relayd) -> None:
    ask = ("plan", "--src", "us-east", "--dst", "sa", "--vms", "1", "--emit", "iperf3")
    done = relayd(*ask, "--endpoint", "aws:sa-east-1=10.0.0.9", "--port", "6000")
    assert done.code == 0, done.err
    assert done.out.startswith("#!/bin/sh\n")
    assert "DST_1=10.0.0.9" in done.out
    assert "-p 6000" in done.out
    assert relayd(*ask, "--json").code == 2
    for wrong in ("--endpoint=x", "--port=no", "--endpoint=sa=a b", "--emit=haproxy"):
        refused = relayd(*ask, wrong)
        assert (refused.code, refused.err.count("\n")) == (2, 1), wrong


def test_the_docs_list_every_emitter_in_its_words() -> None:
    page = (Path(__file__).parents[3] / "docs" / "emit.md").read_text()
    listed = re.findall(r"(?m)^\| `([a-z][a-z0-9-]+)` \| (.*?) \| ", page)
    assert listed == [(one.name, one.writes) for one in emitters().values()]

"""Running it: settings, logs, metrics, the end."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tomllib
from collections.abc import MutableMapping
from contextlib import closing
from pathlib import Path

import pytest
import yaml

import relayd
from relayd.__main__ import main
from relayd.client.blocking import RemoteWan
from relayd.client.errors import ServiceError
from relayd.sources.mirror import MirroredWan
from tests.http.running import ROOT, Served, run, run_apart, served, settled, workers_of
from tests.waiting import TIMEOUT_S, eventually

PLAN = "/v1/plans?src=us-east&dst=sa"


def test_check_prints_the_effective_settings_and_every_problem(tmp_path: Path) -> None:
    config = tmp_path / "service.toml"
    config.write_text('[serve]\nport = 9000\nburst = 0\ncors_origins = ["*"]\n')
    words = ("serve", "--check", "--host", "0.0.0.0", "--tls-key", "nowhere")
    done = run(*words, "--config", str(config), db=tmp_path / "new.db")
    assert done.returncode == 2
    effective = tomllib.loads(done.stdout)["serve"]
    assert (effective["port"], effective["host"]) == (9000, "0.0.0.0")
    for word in ("public address", "go together", "nowhere", "burst", "cors_origins"):
        assert word in done.stderr
    assert not (tmp_path / "new.db").exists()


def test_the_example_is_right(tmp_path: Path) -> None:
    example = ROOT / "configs" / "service.example.toml"
    done = run("serve", "--check", "--config", str(example), db=tmp_path / "new.db")
    assert (done.returncode, done.stderr) == (0, "")
    # Every setting is shown with its default, so that the file is its description.
    bare = run("serve", "--check", db=tmp_path / "new.db")
    said = {line.lstrip("# ").partition(" = ")[0] for line in example.read_text().splitlines()}
    for line in bare.stdout.splitlines()[2:]:
        name = line.removeprefix("# ").split()[0]
        assert name in said, name
    own = tmp_path / "own.toml"
    own.write_text('[serve]\nallowed_hosts = ["relayd.example"]\n')
    named = run("serve", "--check", "--config", str(own), db=tmp_path / "new.db")
    assert tomllib.loads(named.stdout)["serve"]["allowed_hosts"] == ["relayd.example"]


@pytest.mark.parametrize("unit", ["relayd.service", "relayd-watch.service"])
def test_systemd_finds_nothing_wrong_with_the_units(unit: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(ROOT / "configs" / unit)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert unit not in done.stderr, done.stderr  # other units are not ours


def test_the_first_token_of_the_unit_is_kept_where_root_finds_it(installed: Served) -> None:
    """Its user has no home, and a journal is no place for secrets."""
    token = Path(installed.db).parent / "relayd" / "token"
    assert str(token) in installed.log.read_text()
    assert installed.tokens["first"] not in installed.log.read_text()
    assert installed.get("/v1/regions", **installed.by("first")).status == 200
    assert token.stat().st_mode & 0o777 == 0o600


def test_container_and_unit_start_with_secure_settings(tmp_path: Path) -> None:
    configs = ROOT / "configs"
    for name in ("relayd.service", "relayd-watch.service"):
        lines = (configs / name).read_text().splitlines()
        assert {"NoNewPrivileges=yes", "CapabilityBoundingSet=", "UMask=0077"} <= set(lines)
    # The unit checks before it starts, and its example of settings passes.
    unit = (configs / "relayd.service").read_text()
    before, start = re.findall(r"^Exec\w+=/usr/bin/env relayd (.*)$", unit, re.MULTILINE)
    assert before.replace(" --check", "") == start
    db = tmp_path / "new.db"
    words = start.replace("/etc/relayd/service.toml", str(configs / "service.example.toml"))
    checked = run(*words.split(), "--check", db=db)
    assert checked.returncode == 0, checked.stderr
    assert "no_auth = false" in checked.stdout
    assert 'host = "127.0.0.1"' in checked.stdout
    # The container listens for others, so it wants a token first.
    deploy = configs.parent / "deploy"
    container = (deploy / "Containerfile").read_text()
    command = json.loads(container.split("\nCMD ")[-1])
    assert "\nUSER 65534:65534\n" in container
    refused = run(*command, "--check", db=db)
    assert (refused.returncode, "has no token" in refused.stderr) == (2, True)
    assert run("serve", "token", "create", "ops", "--scope", "admin", db=db).returncode == 0
    assert run(*command, "--check", db=db).returncode == 0
    # So does that of the compose file, whose token is made as Prometheus finds it.
    services = yaml.safe_load((deploy / "compose.yaml").read_text())["services"]
    assert run(*services["relayd"]["command"], "--check", db=db).returncode == 0
    making = services["token"]["command"][0].replace("/var/lib/relayd", str(tmp_path))
    environment = {**os.environ, "RELAYD_DB": str(db)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        shell = [*services["token"]["entrypoint"], making]
        subprocess.run(shell, env=environment, check=True, capture_output=True)
    assert (tmp_path / "relayd-token").read_text().startswith("relayd_")
    listed = json.loads(run("serve", "token", "list", "--json", db=db).stdout)["tokens"]
    assert [token["name"] for token in listed] == ["ops", "prometheus"]
    for service in services.values():
        for volume in service.get("volumes", ()):
            if volume.startswith("."):
                assert (deploy / volume.partition(":")[0]).is_file(), volume


@pytest.mark.parametrize(
    "words",
    [
        ("--host", "0.0.0.0"),
        ("--host", "192.0.2.1"),
        ("--host", "::"),
        ("--port", "70000"),
        ("--port", "many"),
        ("--config", "nowhere.toml"),
        ("--tls-cert", "a", "--tls-key", "b"),
    ],
)
def test_what_it_can_not_run_with_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    try:
        code: object = main(["serve", *words, "--db", str(tmp_path / "new.db")])
    except SystemExit as leaving:  # of what is no command line
        code = leaving.code
    assert code == 2
    assert capsys.readouterr().err.startswith("relayd: ")


def test_shared_memory_that_takes_no_locks_is_named(tmp_path: Path) -> None:
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("needs root and unshare, to mount over /dev/shm")
    script = f"mount -t tmpfs -o ro none /dev/shm && exec {sys.executable} -m relayd serve --db "
    command = ["unshare", "--mount", "sh", "-c", script + str(tmp_path / "new.db")]
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert (found.returncode, "Traceback" in found.stderr) == (2, False)
    assert "Mount a tmpfs at /dev/shm" in found.stderr


def test_a_port_that_is_taken(service: Served, tmp_path: Path) -> None:
    done = run_apart("serve", "--port", str(service.port), db=tmp_path / "new.db")
    assert done.returncode == 2
    assert "another port" in done.stderr.splitlines()[-1]


def test_a_store_that_is_none_of_ours_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.db"
    other.write_bytes(b"SQLite format 3\x00 and then something else" * 100)
    assert run_apart("serve", "--port", "0", db=other).returncode == 2
    assert other.read_bytes().startswith(b"SQLite format 3\x00 and then")


def test_a_new_store_serves_the_baseline(installed: Served) -> None:
    plan = installed.get(PLAN, **installed.by("first")).json
    assert plan["snapshot"]["source"] == "baseline"
    assert installed.get("/readyz").json["snapshot_age_s"] is None
    assert Path(installed.db).stat().st_mode & 0o777 == 0o600


def test_an_old_snapshot_is_not_ready(bounded: Served) -> None:
    answer = bounded.get("/readyz")
    assert answer.status == 503
    assert "older" in answer.json["reasons"][0]
    assert bounded.get("/healthz").status == 200


def test_logs_are_json_with_request_ids_and_without_queries(service: Served) -> None:
    service.get(PLAN + "&avoid=provider:gcp", **{"X-Request-ID": "job-1"})
    by_id = {line["request_id"]: line for line in service.lines() if line["event"] == "request"}
    assert (by_id["job-1"]["route"], by_id["job-1"]["status"]) == ("/v1/plans", 200)
    assert "provider:gcp" not in service.log.read_text()


def test_metrics_count_by_route_template(service: Served) -> None:
    asked = 'relayd_http_request_duration_seconds_count{method="GET",route="%s",status="200"}'
    counted = asked % "/v1/plans", 'relayd_plans_total{from="cache"}'
    service.get(PLAN)
    before = [float(service.metric(name)) for name in counted]
    for path in (PLAN, PLAN, "/v1/links/us-east/sa", "/made/up", "/made/up/too"):
        service.get(path)
    assert [float(service.metric(name)) for name in counted] == [n + 2 for n in before]
    assert float(service.metric(asked % "/v1/links/{src}/{dst}")) >= 1
    text = service.get("/metrics").content.decode()
    assert "made" not in text
    named = ("snapshot_age_seconds", "plan_cache_bytes", "worker_queue")
    assert all(f"relayd_{name}" in text for name in (*named, "planning_duration_seconds"))


def sending(service: Served, path: str, body: bytes, now: int) -> socket.socket:
    """Return a connection by which a request was sent, but for the rest of its body."""
    connection = socket.create_connection((service.host, service.port), TIMEOUT_S)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body[:now])
    return connection


def test_requests_in_flight_finish_when_it_is_told_to_stop(store: Path) -> None:
    """And readers of events, who would stay for ever, do not hold it up."""
    body = b'{"src":"us-east","dst":"sa"}'
    service = Served(store, environment={"RELAYD_SERVE_SHUTDOWN_S": "3600"})
    with (
        socket.create_connection((service.host, service.port), TIMEOUT_S) as reader,
        sending(service, "/v1/plans", body, 5) as connection,
    ):
        reader.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"text/event-stream" in reader.recv(65536)
        eventually(lambda: service.get("/healthz").status == 200)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: any(line["event"] == "stopping" for line in service.lines()))
        with pytest.raises(OSError):  # nothing new is accepted
            socket.create_connection((service.host, service.port), 5)
        connection.sendall(body[5:])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert service.stop() == 0
    assert service.lines()[-1]["event"] == "stopped"


SHUFFLE = {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 5}]}


def test_workers_end_with_the_service_however_it_ends(store: Path) -> None:
    service = Served(store)
    workers = workers_of(service)
    assert workers
    service.kill()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_a_worker_that_hangs_holds_up_neither_known_plans_nor_the_end(store: Path) -> None:
    service = Served(store, environment={"RELAYD_SERVE_SHUTDOWN_S": "0"})
    assert service.metric("relayd_worker_queue") == "0.0"
    known = service.get(PLAN)
    workers = workers_of(service)
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    body = json.dumps({"src": "us-east", "dst": "eu"}).encode()
    with sending(service, "/v1/plans", body, len(body)):
        eventually(lambda: service.metric("relayd_worker_queue") == "1.0")
        assert service.get(PLAN).content == known.content
        assert service.stop() == 0


def test_a_worker_that_is_killed_is_replaced(changing: Served) -> None:
    assert changing.ask("POST", "/v1/shuffles", SHUFFLE).status == 200
    settled(changing)
    workers = workers_of(changing)
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    statuses = [changing.ask("POST", "/v1/shuffles", SHUFFLE).status for _ in range(4)]
    assert statuses[-1] == 200
    assert set(statuses) <= {200, 503}


def test_pages_of_other_origins_may_ask_only_where_allowed(bounded: Served) -> None:
    origin = "https://dashboard.example"
    answer = bounded.get(PLAN, Origin=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == origin
    assert "Origin" in answer.headers["Vary"]
    other = bounded.get(PLAN, Origin="https://evil.example")
    assert "Access-Control-Allow-Origin" not in other.headers
    asked = {"Access-Control-Request-Method": "POST"}
    allowed = bounded.ask("OPTIONS", "/v1/plans", headers={"Origin": origin, **asked})
    assert (allowed.status, allowed.headers["Access-Control-Allow-Origin"]) == (204, origin)
    refused = bounded.ask("OPTIONS", "/v1/plans", headers={"Origin": "https://x.y", **asked})
    assert "Access-Control-Allow-Methods" not in refused.headers


def test_tls_with_an_authority_of_ones_own(
    store: Path, tmp_path: Path, environment: MutableMapping[str, str]
) -> None:
    """As docs/service.md says, word for word."""
    page = (ROOT / "docs" / "service.md").read_text().split("## A private authority")[1]
    block = page.split("```sh\n")[1].split("```")[0].split("relayd serve")[0]
    subprocess.run(["sh", "-ec", block], cwd=tmp_path, check=True, capture_output=True)
    cert, key, ca = (tmp_path / f"{name}.pem" for name in ("cert", "key", "ca"))
    with served(store, "--tls-cert", str(cert), "--tls-key", str(key)) as service:
        assert service.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(ca))
        connection = http.client.HTTPSConnection(service.host, service.port, context=context)
        connection.request("GET", PLAN)
        response = connection.getresponse()
        assert json.loads(response.read())["verdict"]
        assert "max-age" in response.headers["Strict-Transport-Security"]
        connection.close()
        # The authority is trusted by those who name it, and by nobody else.
        refused = run("data", "regions", "br", db=service.url)
        assert "certificate verify failed" in refused.stderr
        assert "--ca" in refused.stderr
        assert run("data", "regions", "br", "--ca", str(ca), db=service.url).returncode == 0
        with pytest.raises(ServiceError, match="certificate verify failed"):
            RemoteWan(service.url, attempts=1).plan("us-east", "sa")
        with pytest.raises(ServiceError, match="certificate verify failed"):
            MirroredWan(RemoteWan(service.url, attempts=1)).plan("us-east", "sa")
        with closing(relayd.open(service.url, ca=ca)) as wan:
            assert wan.plan("us-east", "sa").verdict
        with closing(relayd.open(service.url, ca=ca, mirror=True)) as mirror:
            assert mirror.plan("us-east", "sa").verdict
        environment["RELAYD_CA"] = str(ca)
        assert run("data", "regions", "br", db=service.url).returncode == 0
    for wrong, said in (
        (("--ca", str(key)), "can't be used"),
        (("--ca", str(tmp_path / "none")), "No such file"),
    ):
        done = run("data", "regions", *wrong, db="https://127.0.0.1:9")
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "with TLS" in run("data", "regions", "--ca", str(ca), db="http://127.0.0.1:9").stderr
    assert "names none" in run("data", "regions", "--ca", str(ca), db=store).stderr

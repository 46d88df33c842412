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
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml

import relayd
from relayd.__main__ import main
from relayd.client.blocking import RemoteWan
from relayd.client.errors import ServiceError
from relayd.sources.mirror import MirroredWan
from tests.http.running import ROOT, Served, eventually, run, run_apart, served

PLAN = "/v1/plans?src=us-east&dst=sa"


def test_check_prints_the_effective_settings_and_every_problem(tmp_path: Path) -> None:
    config = tmp_path / "service.toml"
    config.write_text('[serve]\nport = 9000\nburst = 0\ncors_origins = ["*"]\n')
    done = run(
        "serve",
        "--check",
        "--config",
        str(config),
        "--host",
        "0.0.0.0",
        "--tls-key",
        "nowhere",
        db=tmp_path / "new.db",
    )
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


def test_the_first_token_of_the_unit_is_kept_where_root_finds_it(tmp_path: Path) -> None:
    """Its user has no home, and a journal is no place for secrets."""
    unit = (ROOT / "configs" / "relayd.service").read_text()
    said = re.findall(r"^Environment=(\w+)=(/var/\S+)$", unit, re.MULTILINE)
    environment = {name: path.replace("/var", str(tmp_path)) for name, path in said}
    db = Path(environment.pop("RELAYD_DB"))
    db.parent.mkdir(parents=True)
    with served(db, auth=True, environment={"HOME": "/proc/none", **environment}) as service:
        token = db.parent / "relayd" / "token"
        assert str(token) in eventually(lambda: token.exists() and service.log.read_text())
        secret = token.read_text().strip()
        assert secret not in service.log.read_text()
        assert service.get("/v1/regions", Authorization=f"Bearer {secret}").status == 200
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
    done = run_apart("serve", "--port", "0", db=other)
    assert done.returncode == 2
    assert other.read_bytes().startswith(b"SQLite format 3\x00 and then")


def test_a_new_store_serves_the_baseline(tmp_path: Path) -> None:
    with served(tmp_path / "new.db") as service:
        plan = service.get(PLAN).json
        assert plan["snapshot"]["source"] == "baseline"
        assert service.get("/readyz").json["snapshot_age_s"] is None
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600


def test_an_old_snapshot_is_not_ready(store: Path) -> None:
    with served(store, environment={"RELAYD_SERVE_SNAPSHOT_MAX_AGE_S": "86400"}) as service:
        answer = service.get("/readyz")
        assert answer.status == 503
        assert "older" in answer.json["reasons"][0]
        assert service.get("/healthz").status == 200


def test_logs_are_json_with_request_ids_and_without_queries(store: Path) -> None:
    with served(store) as service:
        service.get(PLAN + "&avoid=provider:gcp", **{"X-Request-ID": "job-1"})
        service.get("/v1/links/us-east/sa")
    lines = service.lines()
    by_id = {line["request_id"]: line for line in lines if line["event"] == "request"}
    assert by_id["job-1"]["route"] == "/v1/plans"
    assert by_id["job-1"]["status"] == 200
    assert "provider:gcp" not in service.log.read_text()
    assert [line["event"] for line in lines][-2:] == ["stopping", "stopped"]


def test_metrics_count_by_route_template(store: Path) -> None:
    with served(store) as service:
        for path in (PLAN, PLAN, "/v1/links/us-east/sa", "/made/up", "/made/up/too"):
            service.get(path)
        text = service.get("/metrics").content.decode()
    labels = 'method="GET",route="/v1/plans",status="200"'
    assert f"relayd_http_request_duration_seconds_count{{{labels}}} 2.0" in text
    assert 'route="/v1/links/{src}/{dst}"' in text
    assert 'relayd_plans_total{from="cache"} 1.0' in text
    assert "made" not in text
    for name in (
        "snapshot_age_seconds",
        "plan_cache_bytes",
        "worker_queue",
        "planning_duration_seconds",
    ):
        assert f"relayd_{name}" in text


def test_requests_in_flight_finish_when_it_is_told_to_stop(store: Path) -> None:
    service = Served(store)
    body = b'{"src":"us-east","dst":"sa"}'
    head = (
        b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    with socket.create_connection((service.host, service.port), 60) as connection:
        connection.sendall(head + body[:5])
        eventually(lambda: service.get("/healthz").status == 200)
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: any(line["event"] == "stopping" for line in service.lines()))
        with pytest.raises(OSError):  # nothing new is accepted
            socket.create_connection((service.host, service.port), 5)
        connection.sendall(body[5:])
        got = connection.recv(65536)
    assert got.startswith(b"HTTP/1.1 200 ")
    assert service.stop() == 0


def test_readers_of_events_do_not_hold_up_the_end(store: Path) -> None:
    service = Served(store, environment={"RELAYD_SERVE_SHUTDOWN_S": "3600"})
    with socket.create_connection((service.host, service.port), 60) as connection:
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"text/event-stream" in connection.recv(65536)
        assert service.stop() == 0


def test_workers_end_with_the_service_however_it_ends(store: Path) -> None:
    service = Served(store)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(service.process.pid)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert children
    service.kill()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))


def _workers_of(service: Served) -> list[int]:
    found = subprocess.run(
        ["pgrep", "-P", str(service.process.pid), "-f", "spawn_main"],
        check=True,
        capture_output=True,
        text=True,
    )
    return [int(pid) for pid in found.stdout.split()]


def test_a_worker_that_hangs_does_not_hold_up_the_end(store: Path) -> None:
    shuffle = {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 5}]}
    service = Served(store, environment={"RELAYD_SERVE_SHUTDOWN_S": "0"})
    assert service.ask("POST", "/v1/shuffles", shuffle).status == 200
    for pid in _workers_of(service):
        os.kill(pid, signal.SIGSTOP)
    body = json.dumps(shuffle).encode()
    with socket.create_connection((service.host, service.port), 60) as connection:
        connection.sendall(
            b"POST /v1/shuffles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        in_flight = "relayd_http_in_flight 2"  # it, and the one that asks
        eventually(lambda: in_flight in service.get("/metrics").content.decode())
        assert service.stop() == 0


def test_a_worker_that_is_killed_is_replaced(store: Path) -> None:
    shuffle = {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 5}]}
    with served(store) as service:
        assert service.ask("POST", "/v1/shuffles", shuffle).status == 200
        for pid in _workers_of(service):
            os.kill(pid, signal.SIGKILL)
        statuses = [service.ask("POST", "/v1/shuffles", shuffle).status for _ in range(4)]
        assert statuses[-1] == 200
        assert set(statuses) <= {200, 503}


def test_pages_of_other_origins_may_ask_only_where_allowed(store: Path) -> None:
    origin = "https://dashboard.example"
    with served(store, environment={"RELAYD_SERVE_CORS_ORIGINS": origin}) as service:
        answer = service.get(PLAN, Origin=origin)
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert "Origin" in answer.headers["Vary"]
        other = service.get(PLAN, Origin="https://evil.example")
        assert "Access-Control-Allow-Origin" not in other.headers
        asked = {"Access-Control-Request-Method": "POST"}
        allowed = service.ask("OPTIONS", "/v1/plans", headers={"Origin": origin, **asked})
        assert (allowed.status, allowed.headers["Access-Control-Allow-Origin"]) == (204, origin)
        refused = service.ask("OPTIONS", "/v1/plans", headers={"Origin": "https://x.y", **asked})
        assert "Access-Control-Allow-Methods" not in refused.headers


def test_tls_with_an_authority_of_ones_own(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        kinds: tuple[Callable[[RemoteWan], RemoteWan | MirroredWan], ...] = (
            lambda wan: wan,
            MirroredWan,
        )
        for kind in kinds:
            with pytest.raises(ServiceError, match="certificate verify failed"):
                kind(RemoteWan(service.url, attempts=1)).plan("us-east", "sa")
            with closing(kind(RemoteWan(service.url, ca=ca))) as wan:
                assert wan.plan("us-east", "sa").verdict
        assert relayd.open(service.url, ca=ca, mirror=True).plan("us-east", "sa").verdict
        monkeypatch.setenv("RELAYD_CA", str(ca))
        assert run("data", "regions", "br", db=service.url).returncode == 0
    for wrong, said in (
        (("--ca", str(key)), "can't be used"),
        (("--ca", str(tmp_path / "none")), "No such file"),
    ):
        done = run("data", "regions", *wrong, db="https://127.0.0.1:9")
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "with TLS" in run("data", "regions", "--ca", str(ca), db="http://127.0.0.1:9").stderr
    assert "names none" in run("data", "regions", "--ca", str(ca), db=store).stderr

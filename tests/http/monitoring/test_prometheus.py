"""A real Prometheus with the files of configs/monitoring: it scrapes, and its alerts fire."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.running import ROOT, Served
from tests.http.test_watch import DOWN, LINK, keep
from tests.ports import free_port
from tests.waiting import eventually

CONFIGS = ROOT / "configs" / "monitoring"
NAMES = re.compile(r"\b(?:relayd|process)_[a-z0-9_]+")
OF_WATCHERS = re.compile(r"relayd_watch_")


@pytest.fixture(autouse=True)
def needs_prometheus() -> None:
    """Skip where Prometheus is not installed; CI installs it."""
    if not shutil.which("promtool") or not shutil.which("prometheus"):
        if os.environ.get("CI") == "true" and os.geteuid() == 0:
            pytest.fail("scripts/install_tools.sh should have installed prometheus")
        pytest.skip("needs prometheus (apt-get install prometheus)")


def promtool(*words: str, given: bytes = b"") -> str:
    done = subprocess.run(
        ["promtool", *words], check=False, input=given, stdout=-1, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


def test_alerts_fire_when_they_should_and_rest_otherwise(tmp_path: Path) -> None:
    promtool("check", "rules", str(CONFIGS / "rules.yml"))
    cases = Path(__file__).with_name("rules.test.yml").read_text()
    (tmp_path / "cases.yml").write_text(cases.replace("RULES", str(CONFIGS / "rules.yml")))
    promtool("test", "rules", str(tmp_path / "cases.yml"))


def test_metrics_are_named_as_prometheus_names_them(service: Served) -> None:
    service.get("/v1/plans?src=us-east&dst=sa")
    assert promtool("check", "metrics", given=service.get("/metrics").content) == ""


@pytest.fixture
def prometheus(guarded: Served, tmp_path: Path) -> Iterator[str]:
    """Return the address of a Prometheus that scrapes a service which needs tokens."""
    address = f"127.0.0.1:{free_port()}"
    (tmp_path / "relayd-token").write_text(guarded.tokens["read"])
    config = (CONFIGS / "prometheus.yml").read_text()
    config = config.replace("localhost:8080", f"127.0.0.1:{guarded.port}")
    (tmp_path / "prometheus.yml").write_text(config.replace("30s", "1s"))
    rules = (CONFIGS / "rules.yml").read_text()
    (tmp_path / "rules.yml").write_text(rules.replace("for: 1m", "for: 1s"))
    promtool("check", "config", str(tmp_path / "prometheus.yml"))
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=warn",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def ask(prometheus: str, path: str, **query: str) -> Any:
    """Return the data of an answer; None until it is ready."""
    try:
        with urllib.request.urlopen(
            f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=30
        ) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        pytest.fail(f"{query}: {error.read().decode()}")
    except OSError:
        return None


def test_prometheus_scrapes_a_service_and_an_alert_follows_a_link(
    prometheus: str, guarded: Served
) -> None:
    def value(query: str) -> float | None:
        found = (ask(prometheus, "query", query=query) or {}).get("result", [])
        return float(found[0]["value"][1]) if found else None

    def firing() -> list[str]:
        alerts = ask(prometheus, "alerts")["alerts"]
        return [one["labels"]["alertname"] for one in alerts if one["state"] == "firing"]

    eventually(lambda: value("relayd_links_shown") == 12)
    assert value('up{job="relayd"}') == 1
    src, dst = LINK
    state = f'relayd_link_state{{src="{src}",dst="{dst}"}}'
    assert value(state) == 0
    assert "RelaydLinkDown" not in firing()
    keep(guarded.db, DOWN, (), 3600)
    eventually(lambda: value(state) == 2)
    eventually(lambda: "RelaydLinkDown" in firing())
    keep(guarded.db, {}, (LINK,), 0)
    eventually(lambda: "RelaydLinkDown" not in firing())

    # Whatever the dashboard and the alerts ask for is there, and Prometheus can answer it.
    dashboard = json.loads((CONFIGS / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(asked) > 20
    for query in asked:
        ask(prometheus, "query", query=re.sub(r"\$(instance|src|dst)\b", ".*", query))
    alerts = (CONFIGS / "rules.yml").read_text()
    wanted = set(NAMES.findall("\n".join(asked) + alerts))
    guarded.get("/v1/plans?src=us-east&dst=sa", **guarded.by("plan"))
    text = guarded.get("/metrics", **guarded.by("read")).content.decode()
    served_names = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    missing = {
        name
        for name in wanted
        if re.sub(r"_(bucket|count|sum)$", "", name) not in served_names
        and not OF_WATCHERS.match(name)
    }
    assert not missing

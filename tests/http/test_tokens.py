"""Tokens: nothing is read without one once there is one, and none leaks."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import MutableMapping
from contextlib import closing
from pathlib import Path

import pytest

from relayd.__main__ import main
from relayd.client.blocking import RemoteWan
from relayd.dashboard.pages import LEADS
from relayd.http.description import ALL_ROUTES as ROUTES
from relayd.store import open_store
from relayd.store.tokens import SCOPES, Tokens, digest_of, first_token, token_for
from tests.http.running import QUICK, Served, bearer, make_token, run, run_apart, served
from tests.waiting import eventually

PLAN = "/v1/plans?src=us-east&dst=sa"


@pytest.fixture
def own_home(tmp_path: Path, environment: MutableMapping[str, str]) -> Path:
    """Return the folder of a user who never started a service."""
    environment["XDG_DATA_HOME"] = str(tmp_path / "home")
    return tmp_path / "home"


def test_a_first_start_makes_an_admin_token_that_the_same_user_needs_not_type(
    own_home: Path, store: Path
) -> None:
    kept = own_home / "relayd" / "token"
    with served(store, environment=QUICK, auth=True) as service:
        assert service.get(PLAN).status == 401
        token = kept.read_text().strip()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        # Its standard error is a file, which others may read: the token's own file is named.
        assert token not in service.log.read_text()
        assert f"is in {kept}, which only this user can read" in service.log.read_text()
        assert token.encode() not in store.read_bytes()
        assert service.ask("POST", "/v1/samples", b"", bearer(token)).status == 400
        # Commands and clients of the same user find it; elsewhere it goes nowhere.
        assert run("plan", "us-east", "sa", db=service.url).returncode == 0
        with RemoteWan(service.url) as wan:
            assert wan.plan("us-east", "sa").verdict
        assert token_for("https://relayd.example") is None
        assert "revoked" in run("serve", "token", "revoke", "1", db=store).stdout
        eventually(lambda: service.get(PLAN, **bearer(token)).status == 401)


def test_a_terminal_shows_the_token_of_a_first_start(own_home: Path, tmp_path: Path) -> None:
    shown, terminal = os.openpty()
    db = str(tmp_path / "new.db")
    command = [sys.executable, "-m", "relayd", "serve", "--port", "0", "--db", db]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal) as process:
        try:
            assert process.stdout
            assert process.stdout.readline()  # it serves
            said = ""
            while "/#token=" not in said:  # a terminal gives what has reached it
                said += os.read(shown, 4096).decode()
        finally:
            process.terminate()
    token = (own_home / "relayd" / "token").read_text().strip()
    assert f"export RELAYD_TOKEN={token}" in said
    assert f"/#token={token}" in said


def test_stores_of_one_user_get_the_same_first_token_and_each_only_once(
    own_home: Path, tmp_path: Path
) -> None:
    own_home.write_text("not a folder")
    made = []
    for name in ("a", "b", "c", "b"):
        with open_store(tmp_path / name, mode="create") as opened:
            tokens = Tokens(opened.database)
            made.append(first_token(tokens))
            assert [token.scopes for token in tokens.list()] == [{"admin"}]
        if name == "a":
            own_home.unlink()
    a, b, c, again = made
    assert a
    assert b
    assert (a.path, a.is_new, again) == (None, True, None)
    assert (b.path, b.is_new) == (own_home / "relayd" / "token", True)
    assert c == (b.secret, b.path, False)
    assert a.secret != b.secret


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--insecure-public"], "relayd serve token create"),
        (["--behind-proxy", "relayd.example"], "relayd serve token create"),
        ([], "--behind-proxy"),
        (["--behind-proxy", "relayd.example", "--no-auth"], "Leave it out"),
        (["--behind-proxy", "https://relayd.example"], "without scheme"),
    ],
)
def test_nobody_else_reaches_a_service_without_tokens_and_tls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], remedy: str
) -> None:
    db = tmp_path / "new.db"
    assert main(["serve", "--check", "--host", "0.0.0.0", *options, "--db", str(db)]) == 2
    said = capsys.readouterr().err
    assert remedy in said, said
    assert "0.0.0.0" in said or "relayd.example" in said
    assert not db.exists()


def test_with_a_token_it_may_listen_behind_a_proxy(store: Path) -> None:
    public = ("--host", "0.0.0.0", "--behind-proxy", "relayd.example")
    refused = run_apart("serve", "--port", "0", *public, db=store)
    assert (refused.returncode, "has no token" in refused.stderr) == (2, True)
    token = make_token(store, "plan")
    assert run("serve", "--check", *public, db=store).returncode == 0
    with served(store, *public, auth=True) as service:
        assert service.get(PLAN, Host="relayd.example").status == 401
        assert service.get(PLAN, Host="relayd.example", **bearer(token)).status == 200
        assert service.get(PLAN, Host="evil.example", **bearer(token)).status == 421


def test_every_route_with_data_needs_its_scope(guarded: Served) -> None:
    for route in ROUTES:
        path = route.path.replace("{src}", "us-east").replace("{dst}", "sa")
        path = (
            path.replace("{id}", "1")
            .replace("{region}", "us-east")
            .replace("{folder}/{name}", "shared/base.css")
        )
        body: dict[str, object] | None = {} if route.method == "POST" else None
        bare = guarded.ask(route.method, path, body)
        if route.scope is None:
            assert bare.status == (302 if path in LEADS else 200), path
            continue
        assert (bare.status, bare.json["kind"]) == (401, "unauthorized"), path
        assert bare.headers["WWW-Authenticate"].startswith('Bearer realm="relayd"')
        if route.path == "/v1/events":
            continue  # a stream without an end
        for scope in SCOPES:
            answer = guarded.ask(route.method, path, body, guarded.by(scope))
            if scope in (route.scope, "admin"):
                assert answer.status not in (401, 403), (path, scope)
            else:
                assert answer.status == 403, (path, scope)
                assert 'error="insufficient_scope"' in answer.headers["WWW-Authenticate"]
    assert guarded.get("/v1/nothing").status == 404


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer relayd_forged",
        "Basic YTpi",
        "bearer  x y",
        "Bearer " + "a" * 4000,
        "Bearer \xff\xfe",
        "relayd_forged",
        "Bearer relayd_" + "A" * 43,
    ],
)
def test_forged_tokens(guarded: Served, header: str) -> None:
    answer = guarded.get(PLAN, Authorization=header)
    assert (answer.status, answer.json["kind"]) == (401, "unauthorized")
    assert "relayd_" not in answer.content.decode()


def test_a_token_may_be_the_password_of_an_address(guarded: Served) -> None:
    said = b64encode(f"anybody:{guarded.tokens['plan']}".encode()).decode()
    assert guarded.get(PLAN, Authorization=f"Basic {said}").status == 200


def test_an_expired_token_is_refused(guarded: Served) -> None:
    expired = eventually(
        lambda: (found := guarded.get(PLAN, **guarded.by("expired"))).status == 401 and found
    )
    assert 'error="invalid_token"' in expired.headers["WWW-Authenticate"]
    listed = guarded.get("/v1/tokens", **guarded.by("admin")).json["tokens"]
    assert "expired" in [each["state"] for each in listed if each["name"] == "expired"]


def test_tokens_are_listed_with_their_last_use_and_without_secrets(
    store: Path, service: Served
) -> None:
    everything = ["read", "plan", "ingest", "probe", "admin"]
    free = service.get("/v1/token").json
    assert (free["token"], free["scopes"]) == (None, everything)
    secrets = {scope: make_token(store, scope) for scope in ("admin", "read", "plan")}
    run("serve", "token", "revoke", "3", db=store)
    began_s = time.time()
    with served(store, auth=True) as keeper:
        own = keeper.get("/v1/token", **bearer(secrets["read"])).json
        assert (own["token"]["number"], own["scopes"]) == (2, ["read"])
        of_admin = keeper.get("/v1/token", **bearer(secrets["admin"])).json["scopes"]
        assert of_admin == everything
        assert keeper.get("/v1/token", **bearer(secrets["plan"])).status == 401
        listed = keeper.get("/v1/tokens", **bearer(secrets["admin"]))
        assert [(each["number"], each["state"]) for each in listed.json["tokens"]] == [
            *((1, "valid"), (2, "valid"), (3, "revoked"))
        ]
        used = [each["last_used_at_s"] for each in listed.json["tokens"]]
        assert (used[0] >= used[1] >= began_s, used[2]) == (True, None)
        for secret in secrets.values():
            assert secret.encode() not in listed.content
            assert digest_of(secret).encode() not in listed.content
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # nothing can be stored now
            busy = keeper.get("/v1/tokens", **bearer(secrets["admin"])).json["tokens"]
            assert busy[0]["last_used_at_s"] > used[0]
            other.execute("ROLLBACK")
    # It is kept at least when the service ends.
    kept = json.loads(run("serve", "token", "list", "--json", db=store).stdout)["tokens"]
    used = [each["last_used_at_s"] for each in kept]
    assert used[2] is None
    assert began_s <= used[1] <= used[0] <= time.time()
    with open_store(store, mode="write") as opened:
        Tokens(opened.database).note_used({1: 5.0})  # of a process that was slow to tell
        assert Tokens(opened.database).list()[0].last_used_at_s == used[0]


def test_a_token_is_nowhere_but_with_who_has_it(guarded: Served) -> None:
    token, store = guarded.tokens["admin"], Path(guarded.db)
    assert guarded.get(PLAN, **bearer(token)).status == 200
    metrics = guarded.get("/metrics", **bearer(token)).content.decode()
    assert guarded.get("/v1/plans?src=relayd&dst=sa", **bearer(token)).status == 422
    changed = guarded.ask("POST", "/v1/samples", b"", bearer(token))
    unknown = guarded.ask("POST", "/v1/samples", b"", bearer("relayd_unknown"))
    ids = [answer.headers["X-Request-ID"] for answer in (changed, unknown)]
    asked = guarded.ask("POST", "/v1/plans", b"{}", bearer(token)).headers["X-Request-ID"]
    audited = {line["request_id"]: line for line in guarded.lines() if line["event"] == "change"}
    assert asked not in audited
    first, second = (audited[each] for each in ids)
    assert (first["token"], first["status"]) == ("admin", 400)
    assert (second["token"], second["status"]) == (None, 401)
    assert (first["method"], first["path"]) == ("POST", "/v1/samples")
    assert first["address"] == "127.0.0.1"
    listed = run("serve", "token", "list", "--json", db=store).stdout
    for shown in (metrics, guarded.log.read_text(), listed):
        assert token not in shown
    assert digest_of(token) not in listed
    files = b"".join(file.read_bytes() for file in store.parent.glob(f"{store.name}*"))
    assert token.encode() not in files
    assert digest_of(token).encode() in files


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "token", "create", ""), "name"),
        (("serve", "token", "create", "x", "--scope", "everything"), "scope"),
        (("serve", "token", "create", "x", "--expires", "0s"), "future"),
        (("serve", "token", "revoke", "99"), "not in this store"),
        (("serve", "token", "revoke", "one"), "whole number"),
    ],
)
def test_wrong_commands_say_why(
    store: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main([*words, "--db", str(store)]) == 2
    assert said in capsys.readouterr().err


def signed_in(service: Served, token: str, **headers: str) -> str:
    """Sign a browser in, and give the cookie as it sends it back."""
    answer = service.ask("POST", "/v1/session", None, {**bearer(token), **headers})
    assert answer.status == 200
    assert token.encode() not in answer.content
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_a_browser_is_signed_in_by_a_cookie_that_no_script_and_no_other_site_has(
    guarded: Served,
) -> None:
    token = guarded.tokens["admin"]
    for path in ("/v1/session", PLAN):
        assert guarded.ask("POST", path.partition("?")[0], None, {}).status == 401
    wrong = guarded.ask("POST", "/v1/session", None, bearer("rlt_wrong"))
    assert (wrong.status, wrong.headers["Set-Cookie"]) == (401, None)
    set_ = guarded.ask("POST", "/v1/session", None, bearer(token)).headers["Set-Cookie"]
    assert set_.split("; ")[1:] == ["HttpOnly", "SameSite=Strict"]  # of this folder alone
    host = f"{guarded.host}:{guarded.port}"
    by_https = {"Origin": f"https://{host}", "Sec-Fetch-Site": "same-origin", **bearer(token)}
    secure = guarded.ask("POST", "/v1/session", None, by_https).headers["Set-Cookie"]
    assert "Secure" in secure.split("; ")
    cookie = signed_in(guarded, token)
    answer = guarded.get(PLAN, Cookie=cookie)
    assert answer.status == 200
    assert "Cookie" in answer.headers["Vary"]
    assert guarded.get("/v1/token", Cookie=cookie).json["token"]["name"] == "admin"
    # A token of its own in the header counts alone, so that programs are as they were.
    assert guarded.get(PLAN, Cookie=cookie, **bearer("rlt_wrong")).status == 401
    assert guarded.get(PLAN, Cookie="relayd-session=rlt_wrong").status == 401
    out = guarded.ask("DELETE", "/v1/session", None, {"Cookie": cookie, **own(guarded)})
    assert out.headers["Set-Cookie"].startswith("relayd-session=;")
    assert "Max-Age=0" in out.headers["Set-Cookie"]


def own(service: Served) -> dict[str, str]:
    return {"Origin": f"http://{service.host}:{service.port}", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    "sent",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
        {},  # a browser names the origin of what changes something: this is none
    ],
)
def test_a_cookie_that_another_page_sends_changes_nothing(
    guarded: Served, sent: dict[str, str]
) -> None:
    plan = {"src": "us-east", "dst": "sa"}
    cookie = {"Cookie": signed_in(guarded, guarded.tokens["admin"])}
    for method, path, content in (
        ("POST", "/v1/plans", plan),
        ("POST", "/v1/samples", {"samples": [{**plan, "metric": "rtt_ms"}]}),
        ("POST", "/v1/campaigns", {"budget_usd": 1}),
        ("DELETE", "/v1/session", None),
    ):
        answer = guarded.ask(method, path, content, {**cookie, **sent})
        assert (answer.status, answer.json["kind"]) == (403, "cross-origin"), path
    assert guarded.ask("POST", "/v1/plans", plan, {**cookie, **own(guarded)}).status == 200
    # Nor does it read, but for what has no page at all.
    assert guarded.get(PLAN, **cookie, **sent).status == (403 if sent else 200)


def test_headers_say_what_a_caller_may_still_send(hurried: Served) -> None:
    seen = [hurried.get(PLAN) for _ in range(5)]
    assert [answer.status for answer in seen] == [200] * 4 + [429]
    assert {answer.headers["RateLimit-Policy"] for answer in seen} == {'"requests";q=4;w=400'}
    left = [answer.headers["RateLimit"].split(";") for answer in seen]
    assert [parts[1] for parts in left] == ["r=3", "r=2", "r=1", "r=0", "r=0"]
    assert 390 < int(left[-1][2].removeprefix("t=")) <= 400
    assert int(seen[-1].headers["Retry-After"]) >= 1
    assert "RateLimit" not in hurried.get("/healthz").headers  # which has no limit


def test_a_plan_has_a_tag_until_the_next_snapshot(service: Served) -> None:
    answer = service.get(PLAN)
    assert answer.headers["Cache-Control"].startswith("private")
    known = service.get(PLAN, **{"If-None-Match": answer.headers["ETag"]})
    assert (known.status, known.content) == (304, b"")
    other = service.get(f"{PLAN}&volume_gb=7", **{"If-None-Match": answer.headers["ETag"]})
    assert other.status == 200

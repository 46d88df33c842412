"""What all pages share: theme, token, policy, files, and how little the first view takes."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from relayd.dashboard.pages import FILES, PAGES
from tests.dashboard.browser import WAIT_MS, Watched, settle, watched
from tests.dashboard.conftest import QUICK
from tests.http.running import Served, make_store, run, served

MOST_FIRST_VIEW_BYTES = 150_000
WITHOUT_STORAGE = (
    "for (const name of ['sessionStorage', 'localStorage']) Object.defineProperty(window, "
    "name, { get: () => { throw new DOMException('forbidden', 'SecurityError'); } });"
)


@pytest.mark.parametrize(
    ("address", "place", "least"),
    # On a busy machine, the list has the gains that the planner found in its seconds.
    [("/", "table.gains tbody tr", 1), ("/matrix?measured=1", "th.name", 63)],
)
def test_the_first_view_is_small(
    address: str, place: str, least: int, grid: Served, page: Watched
) -> None:
    """All that is transferred until nothing more is asked, headers and all, at 63 regions."""
    session = page.page.context.new_cdp_session(page.page)
    session.send("Network.enable")
    sizes: list[float] = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    asked: list[str] = []
    page.page.on(
        "request",
        lambda request: asked.append(request.url) if "v1/events" not in request.url else None,
    )
    shown = page.open(f"{grid.url}{address}")
    expect(shown.locator(place).nth(least - 1)).to_be_visible(timeout=WAIT_MS)
    settle(shown)
    assert len(sizes) == len(asked)
    assert not any("uplot" in url for url in asked)
    assert sum(sizes) < MOST_FIRST_VIEW_BYTES
    assert all(url.startswith(grid.url) for url in asked)
    # Scripts are asked for at once: the page names them all.
    html = grid.get(address).content.decode()
    scripts = [url.rpartition("assets/")[2] for url in asked if url.endswith(".js")]
    assert scripts
    assert [name for name in scripts if f"assets/{name}" not in html] == []


def test_a_chosen_theme_is_kept(empty: Served, page: Watched) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    shown = page.open(f"{empty.url}/fleet")
    light = shown.evaluate(paper)
    shown.get_by_label("Theme").select_option("dark")
    dark = shown.evaluate(paper)
    assert dark != light
    shown.goto(f"{empty.url}/campaigns")
    assert shown.evaluate(paper) == dark
    shown.emulate_media(media="print")
    assert shown.evaluate(paper) == light
    shown.emulate_media(media="screen")
    assert shown.get_by_label("Theme").input_value() == "dark"
    shown.get_by_label("Theme").select_option("auto")
    assert shown.evaluate(paper) == light
    shown.emulate_media(color_scheme="dark")
    assert shown.evaluate(paper) == dark


def test_without_script_a_page_says_so(empty: Served, browser: Browser) -> None:
    with watched(browser, java_script_enabled=False) as seen:
        for page in PAGES:
            seen.page.goto(f"{empty.url}{page.path}")
            assert "switched off" in seen.page.locator("noscript").inner_text()
            assert seen.page.locator("h1").inner_text() == page.title


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """A service that needs a token, and one that may read and plan."""
    db = make_store(tmp_path_factory.mktemp("guarded"))
    made = run("serve", "token", "create", "reader", "--scope", "read", "--scope", "plan", db=db)
    with served(db, environment=QUICK, auth=True) as service:
        yield service, next(word for word in made.stdout.split() if len(word) > 30)


def test_a_token_is_typed_once_and_forgotten_on_signing_out(
    guarded: tuple[Served, str], browser: Browser
) -> None:
    service, token = guarded
    # The browser itself says in the console what was refused, and that nothing came.
    with watched(browser, allowed=("401", "net::ERR")) as seen:
        shown = seen.page
        shown.goto(f"{service.url}/network?metric=rtt")  # as the menu calls it
        field = shown.get_by_label("Token", exact=True)
        field.wait_for()
        assert seen.problems == []  # nothing is asked for before
        assert seen.violations() == []
        assert shown.get_by_role("button", name="Sign out").count() == 0
        field.fill("rlt_wrong")
        shown.keyboard.press("Enter")
        shown.locator(".problem").wait_for()
        assert "unknown, expired or revoked" in shown.locator(".problem").inner_text()
        assert shown.context.cookies() == []
        field.fill(token)
        shown.keyboard.press("Enter")
        # Back where it began, with what the address holds.
        shown.locator("table.matrix").wait_for()
        assert shown.url == f"{service.url}/matrix?metric=rtt"
        settle(shown)
        assert token not in shown.content()
        # No script has the token: the browser alone sends it, and to no other site.
        (kept,) = [each for each in shown.context.cookies() if each["value"] == token]
        assert (kept["httpOnly"], kept["sameSite"], kept["path"]) == (True, "Strict", "/v1")
        assert token not in shown.evaluate(
            "document.cookie + JSON.stringify([sessionStorage, localStorage])"
        )
        # An address can be shared: a new tab of the browser needs not sign in.
        other = shown.context.new_page()
        other.goto(f"{service.url}/matrix?metric=rtt")
        other.locator("table.matrix").wait_for()
        other.close()
        shown.get_by_role("link", name="Token", exact=True).click()
        shown.get_by_role("heading", name="Token 1: reader").wait_for()
        scopes = shown.locator("dl.facts").last
        assert " ".join(scopes.inner_text().split()).startswith("read yes")
        assert "probe no start and stop campaigns" in " ".join(scopes.inner_text().split())
        assert seen.violations() == []
        shown.get_by_role("link", name="Go on").click()
        shown.locator("table.matrix").wait_for()
        shown.get_by_role("button", name="Sign out").click()
        shown.get_by_text("You are signed out").wait_for()
        assert shown.context.cookies() == []
        shown.go_back()
        field.wait_for()  # what was shown is not shown again
        field.fill(token)
        shown.keyboard.press("Enter")
        shown.locator("table.matrix").wait_for()
        shown.get_by_role("link", name="Token", exact=True).click()
        shown.get_by_role("heading", name="Token 1: reader").wait_for()
        shown.get_by_role("button", name="Sign out").click()
        shown.get_by_text("You are signed out").wait_for()
        # An address leads to no other origin.
        shown.goto(f"{service.url}/sign-in#next=https%3A%2F%2Fevil.example%2F")
        field.fill(token)
        shown.keyboard.press("Enter")
        shown.wait_for_url(f"{service.url}/")
        # The link that a first start prints does the same, and is not left in the address.
        shown.goto("about:blank")  # a page without its cookie would go and ask for the token
        shown.context.clear_cookies()
        shown.goto(f"{service.url}/#token={token}")
        shown.get_by_label("From").first.wait_for()
        assert shown.url == f"{service.url}/"
        shown.goto(f"{service.url}/matrix")
        shown.locator("table.matrix").wait_for()
        settle(shown)
        shown.route("**/v1/**", lambda route: route.abort())
        shown.get_by_role("radio", name="RTT").check()
        shown.locator(".problem").wait_for()
        assert "does not answer" in shown.locator(".problem").inner_text()


def test_pages_and_signing_in_work_where_storage_is_forbidden(
    guarded: tuple[Served, str], browser: Browser
) -> None:
    service, token = guarded
    with watched(browser) as seen:
        seen.page.add_init_script(WITHOUT_STORAGE)
        seen.page.goto(f"{service.url}/fleet?all=1")
        seen.page.get_by_label("Token", exact=True).fill(token)
        seen.page.keyboard.press("Enter")
        seen.page.locator(".empty").first.wait_for()
        assert seen.page.url == f"{service.url}/fleet?all=1"
        seen.page.get_by_label("Theme").select_option("dark")
        assert seen.page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_error_is_a_page_for_people_and_a_document_for_programs(
    empty: Served, browser: Browser
) -> None:
    path = "/nowhere/%3Cimg%20src=x%20onerror=alert(1)%3E"
    with watched(browser, allowed=("status of 4",), width=390) as seen:
        shown = seen.open(f"{empty.url}{path}")
        assert shown.locator("h1").inner_text() == "Nothing is here"
        assert "no such path" in shown.locator(".problem").inner_text()
        assert shown.locator("img").count() == 0
        assert seen.violations() == []
        shown.get_by_label("Theme").select_option("dark")  # its scripts and styles are found
        paper = "getComputedStyle(document.body).backgroundColor"
        assert shown.evaluate(paper) == "rgb(20, 23, 27)"
        shown.get_by_role("link", name="Measure").click()
        shown.wait_for_url(f"{empty.url}/campaigns")
    for_people = empty.get(path, Accept="text/html,*/*")
    assert for_people.status == 404
    assert "default-src 'none'" in for_people.headers["Content-Security-Policy"]
    for_programs = [(path, "*/*"), ("/v1/nowhere", "text/html"), ("/v1/links/a/b", "text/html")]
    for address, accepted in for_programs:
        answer = empty.get(address, Accept=accepted)
        assert answer.headers["Content-Type"] == "application/problem+json", address


def test_the_api_is_tried_in_the_same_frame(empty: Served, page: Watched) -> None:
    shown = page.open(f"{empty.url}/fleet")
    shown.get_by_text("Settings").click()
    shown.get_by_role("link", name="API").click()
    shown.wait_for_url(f"{empty.url}/docs")
    # All operations and models are there, and what is linked to is there, too.
    shown.locator("#model-Problem").wait_for()
    api: Any = empty.get("/openapi.json").json
    ids = set(shown.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)"))
    operations = [each for methods in api["paths"].values() for each in methods.values()]
    assert {each["operationId"] for each in operations} <= ids
    assert {f"model-{name}" for name in api["components"]["schemas"]} <= ids
    linked = "[...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.hash.slice(1))"
    assert set(shown.evaluate(linked)) <= ids
    assert page.violations() == []
    tried = shown.locator("section#get_link")
    tried.get_by_role("button", name="Try it").click()
    expect(tried.locator(".answer")).to_contain_text('"aws:us-east-1"', timeout=WAIT_MS)
    shown.set_viewport_size({"width": 390, "height": 900})
    assert page.fits()


def test_only_own_scripts_run(empty: Served, browser: Browser) -> None:
    with watched(browser, allowed=("Content Security Policy",)) as seen:
        shown = seen.open(f"{empty.url}/fleet")
        for attempt in (
            "script.textContent = 'window.ran = true'",
            "script.src = 'data:text/javascript,window.ran=true'",
        ):
            shown.evaluate(
                f"() => {{ const script = document.createElement('script'); {attempt};"
                " document.head.append(script); }"
            )
        shown.evaluate("() => document.body.setAttribute('onclick', 'window.ran = true')")
        shown.locator("h1").click()
        assert shown.evaluate("window.ran") is None
        assert len(seen.problems) >= 3


def test_files_come_with_policy_type_and_tag_and_nothing_else_is_served(empty: Served) -> None:
    page = empty.get("/")
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert part in page.headers["Content-Security-Policy"]
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    for name, kind in (("matrix/page.js", "text/javascript"), ("shared/base.css", "text/css")):
        plain, packed = (
            empty.get(f"/assets/{name}", **given) for given in ({}, {"Accept-Encoding": "gzip"})
        )
        assert plain.headers["Content-Type"].startswith(kind)
        assert plain.content == (FILES / name).read_bytes() == gzip.decompress(packed.content)
        for tag in (plain.headers["ETag"], packed.headers["ETag"]):
            assert empty.get(f"/assets/{name}", **{"If-None-Match": tag}).status == 304
    for path in (
        "/assets/none.js",
        "/assets/shared/page.html",
        "/assets/",
        "/assets/../pages.py",
        "/assets/..%2fpages.py",
        "/assets/..%5cpages.py",
        "/assets/%2fetc%2fpasswd",
        "/assets/matrix/page.js/",
        "/assets/matrix/page.js%00",
        "/assets/matrix/PAGE.JS",
        "/files/matrix/page.js",
    ):
        assert empty.get(path).status in (400, 404), path


RELEASED = ("vendor/uplot.js", "vendor/uplot.css")
"""Files of others as they were released."""


@pytest.mark.parametrize("name", RELEASED)
def test_what_others_released_is_unchanged_and_its_license_is_sent_along(name: str) -> None:
    known = (FILES / "vendor" / "licenses.txt").read_text()
    assert sha256((FILES / name).read_bytes()).hexdigest() in known
    assert "The MIT License" in known


@pytest.mark.parametrize(
    "name", sorted({str(path.relative_to(FILES)) for path in FILES.glob("*/*.js")} - set(RELEASED))
)
def test_no_script_makes_markup_of_text(name: str) -> None:
    # The name of a namespace is not an address.
    text = (FILES / name).read_text().replace("http://www.w3.org/2000/svg", "")
    for risky in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "http://",
        "https://",
    ):
        assert risky not in text, f"{name} has {risky}"

"""The gateway's page in a real browser, and what it refuses. A browser that is not there is skipped."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from tenure import Budget, Context
from tenure.gateway.sheets import Sheets
from tenure.gateway.ui import pages
from tenure.store.store import Store
from tenure.testing.provider import serve

HOSTILE = "<script>document.title='broken'</script>\x1b[31m"
TASK = "Find out why the login test fails"
PIN = "form[action$='/pin'] input[name=object]"
READ = {"name": "read", "description": "Read a file.", "input_schema": {"type": "object"}}


def grow(context: Context, calls: int) -> None:
    """A loop of reads, each reported as a provider would."""
    context.extend([{"role": "user", "content": TASK}])
    for n in range(calls):
        size = len(context.wire(model="claude-opus-5", max_tokens=100, tools=[READ])) // 4
        used = {
            "input_tokens": 10,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": max(0, size - 910),
            "output_tokens": 9,
        }
        call = {"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"path": f"src/{HOSTILE}{n}.py"}}
        context.append(
            {"id": f"m{n}", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": [call], "usage": used}
        )
        text = "\n".join(f"def function_{n}_{line}(): return {HOSTILE!r}" for line in range(30))
        context.extend([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": text}]}])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = Store(f"sqlite:///{tmp_path}/gateway.db")
    yield held
    held.close()


@pytest.fixture
def conversation(store: Store) -> str:
    context = Context(dialect="anthropic", budget=Budget(ceiling=8_000), store=store, model="claude-opus-5", tenant="a", clip=0)
    grow(context, 24)
    return context.conversation


def app(store: Store, **more: Any) -> Starlette:
    return Starlette(routes=pages(Sheets(store, now=lambda: datetime(2026, 1, 1, tzinfo=UTC)), **more))


@pytest.fixture
def site(store: Store) -> Iterator[str]:
    with serve(app(store)) as url:
        yield url


@pytest.fixture(params=[(1280, "light"), (400, "dark")], ids=["wide", "narrow"])
def browser(request: pytest.FixtureRequest) -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromium-driver are not installed")
    width, scheme = request.param
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    preferred = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={width},1200", preferred):
        options.add_argument(argument)
    held = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    held.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": False}
    )
    yield held
    held.quit()


def press(browser: Any, label: str, n: int = 0) -> None:
    """Press a button, and wait for the page that comes of it."""
    from selenium.webdriver.support import expected_conditions as until
    from selenium.webdriver.support.wait import WebDriverWait

    page, button = browser.find_element("tag name", "html"), browser.find_elements("xpath", f"//button[text()='{label}']")[n]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", button)
    button.click()
    WebDriverWait(browser, 30).until(until.staleness_of(page))


def wide(browser: Any) -> list[str]:
    """What does not fit into the width of the window, outside of what can be scrolled by itself."""
    script = """const all = [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll') || e.matches('.scroll'));
    return all.filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest('svg')).map(e => e.outerHTML.slice(0, 120))"""
    assert browser.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    return list(browser.execute_script(script))


@pytest.mark.long
def test_a_person_looks_through_a_conversation_and_puts_back_what_left(
    browser: Any, site: str, store: Store, conversation: str
) -> None:
    browser.get(f"{site}/ui")
    assert browser.title == "Conversations"
    browser.find_element("link text", TASK).click()
    assert browser.find_element("tag name", "h1").text == TASK
    assert browser.title == TASK, "nothing that a session holds is run"
    assert wide(browser) == []
    assert browser.find_elements("css selector", ".calls rect")
    assert browser.find_elements("css selector", ".calls .mark")
    before = store.conversation(conversation).commits
    press(browser, "Restore")
    assert store.conversation(conversation).commits == before + 1
    assert "restore of read:1" in browser.page_source
    press(browser, "Undo", before)
    assert store.conversation(conversation).commits == before + 2
    browser.find_element("css selector", PIN).send_keys("read:9999")
    press(browser, "Pin")
    assert browser.find_element("tag name", "h1").text == "Not found"
    assert "read:9999" in browser.page_source
    browser.get(f"{site}/ui/{conversation}")
    browser.find_element("css selector", PIN).send_keys("read:3")
    press(browser, "Pin")
    assert [hold.object for hold in store.holds(conversation)] == ["read:3"]
    press(browser, "Unpin")
    assert store.holds(conversation) == ()
    press(browser, "Compare")
    assert "What the model saw" in browser.find_element("tag name", "h1").text
    assert wide(browser) == []


def test_the_page_says_what_left_and_runs_nothing_of_it(site: str, conversation: str) -> None:
    page = httpx.get(f"{site}/ui/{conversation}")
    assert "over the ceiling of 8,000" in page.text
    assert "read:1@" in page.text
    assert "<script" not in page.text
    assert "\x1b" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    changes = httpx.get(f"{site}/ui/{conversation}/diff", params={"before": 0, "after": 20})
    assert "function_" in changes.text


@pytest.mark.parametrize("origin", [None, "http://evil.example"])
def test_nothing_is_changed_from_another_page(site: str, store: Store, conversation: str, origin: str | None) -> None:
    before = store.conversation(conversation).commits
    headers = {"origin": origin} if origin else {}
    assert httpx.post(f"{site}/ui/{conversation}/undo", data={"commit": "0"}, headers=headers).status_code == 403
    crossing = {"origin": site, "sec-fetch-site": "cross-site"}
    assert httpx.post(f"{site}/ui/{conversation}/undo", data={"commit": "0"}, headers=crossing).status_code == 403
    assert store.conversation(conversation).commits == before


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/nothing/diff?before=0&after=1", 404),
        ("/{id}/diff?before=x&after=1", 404),
        ("/{id}/diff?before=0&after=999", 404),
    ],
)
def test_what_is_not_there_is_said(site: str, conversation: str, path: str, status: int) -> None:
    assert httpx.get(f"{site}/ui{path.format(id=conversation)}").status_code == status


def test_a_form_that_is_too_large_or_wrong_changes_nothing(site: str, store: Store, conversation: str) -> None:
    own = {"origin": site}
    assert httpx.post(f"{site}/ui/{conversation}/pin", content=b"object=" + b"x" * 5_000, headers=own).status_code == 413
    assert httpx.post(f"{site}/ui/{conversation}/undo", data={"commit": "-1"}, headers=own).status_code == 404
    assert httpx.post(f"{site}/ui/{conversation}/burn", data={}, headers=own | {"content-length": "0"}).status_code == 404
    assert store.holds(conversation) == ()


def test_a_tenant_sees_its_own_conversations_only(store: Store, conversation: str) -> None:
    def viewer(request: Request) -> str | None:
        if (name := request.headers.get("x-tenant")) is None:
            raise PermissionError("give a client token as the password")
        return name

    with serve(app(store, viewer=viewer)) as url:
        assert httpx.get(f"{url}/ui").status_code == 401
        assert TASK in httpx.get(f"{url}/ui", headers={"x-tenant": "a"}).text
        assert TASK not in httpx.get(f"{url}/ui", headers={"x-tenant": "b"}).text
        assert httpx.get(f"{url}/ui/{conversation}", headers={"x-tenant": "b"}).status_code == 404


def test_an_empty_store_says_how_to_begin(site: str) -> None:
    assert "tenure wrap" in httpx.get(f"{site}/ui").text


def test_the_arms_of_a_split_are_added_up_apart(site: str, store: Store, conversation: str) -> None:
    held_out = Context(dialect="anthropic", store=store, model="claude-opus-5", holdout=1.0)
    grow(held_out, 2)
    page = httpx.get(f"{site}/ui").text
    assert "By arm" in page
    assert "control" in page

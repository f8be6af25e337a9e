"""The page in a real Chromium, over a real server process and a scripted model."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.page.views import seeded_server
from tests.serving import ServerProcess, environment, server_process

CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium"))), None)
QUIET = ("--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync")
_PATIENCE_MS = 120_000
NEWEST_RUNS = 20
"""More than one test has."""


@pytest.fixture(scope="package")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def server(model: OpenAIServer, home: Path) -> Iterator[ServerProcess]:
    text = "models: {basic: {max_retries: 0, timeout_seconds: 60}}\nruns: {approval: [bash_tool]}\n"
    (home / "conf.yaml").write_text(text, encoding="utf-8")
    with server_process(environment(model.base_url, home), home) as process:
        yield process


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a conversation for each view, whose tests leave them as they are."""
    with seeded_server(tmp_path_factory.mktemp("seeded")) as process:
        yield process


# Not for the session: as long as it is open, this thread has an event loop, and no other can run in it.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: ServerProcess, model: OpenAIServer) -> Iterator[Page]:
    """A tab of a new person, on the page; an error in its log fails the test."""
    model.reset(SIMPLE)
    context = browser.new_context(base_url=server.url, locale="en-GB")
    context.set_default_timeout(_PATIENCE_MS)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
    page.goto("/")
    yield page
    context.close()
    cancel_all(server.url)
    assert wrong == []


def cancel_all(url: str) -> None:
    """Cancel the runs at work: their calls would take the answers that the model has for the next test."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        for run in client.get("/api/runs", params={"limit": NEWEST_RUNS}).json().get("runs", []):
            if run["status"] in ("queued", "running"):
                client.post(f"/api/runs/{run['run_id']}/cancel")

"""`maniple browse`: a task done in a real browser, by the browser's agent alone."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from maniple.cli.app import Mode, Strategy, parse_start_page
from maniple.config.web_settings import BrowserMode, BrowserStrategy
from tests.cli.processes import environment, maniple
from tests.crawler.web import Reply, Site, open_site
from tests.openai_server import OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio
SHOP = """<title>Shop</title><h1>Hats</h1>
<button onclick="document.title = 'Bought'; this.textContent = 'Bought'">
Buy the hat</button>"""


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply(SHOP)}) as site:
        yield site


def buying(site: Site) -> dict[str, list[dict]]:
    go = call("browser_use", action="go_to_url", url=f"{site.url}/") | {"text": "First to the shop."}
    click = call("browser_use", action="click_element", index=0) | {"text": "The button buys."}
    return {"browser": [go, click, call("terminate", status="success", result="A hat is **bought**.")]}


def env(folder: Path, server: OpenAIServer, **more: str) -> dict[str, str]:
    opened = {"MANIPLE_FETCH__ALLOW_PRIVATE": "127.0.0.0/8", "MANIPLE_BROWSER__ENABLED": "true"}
    return environment(folder, server.base_url, **{**opened, **more})


def page_in(notes: str) -> Path:
    found = re.search(r"^Page of the run: (.+)$", notes, re.M)
    assert found, notes
    return Path(found[1])


async def test_each_step_is_a_line_and_the_page_shows_the_run_with_its_recording(
    tmp_path: Path, site: Site
) -> None:
    _, *rest = buying(site)["browser"]
    with serving({"browser": rest}) as server:
        status, output, notes = await maniple(
            *("browse", "--url", f"{site.url}/", "Buy", "a hat"), folder=tmp_path, env=env(tmp_path, server)
        )
        first = server.requests[0]["messages"]
    assert (status, output) == (0, "A hat is **bought**.\n"), notes
    assert "Buy the hat" in json.dumps(first), "the model is first asked when it sees the page"
    lines = [line.strip() for line in notes.splitlines()]
    assert any(
        re.match(rf"1 go_to_url {site.url}/ \(.*\): Navigated to {site.url}/", line) for line in lines
    ), notes
    assert any(re.match(r"2 click_element 0 \(.*\): Clicked element", line) for line in lines), notes
    file = page_in(notes)
    html = file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.dumps(f"Buy a hat\nBegin at {site.url}/") in html
    assert "A hat is **bought**." in html
    assert "The button buys." in html
    assert '"data:image/gif;base64,' in html
    assert '"data:image/jpeg;base64,' in html


@pytest.mark.slow
async def test_a_program_gets_the_steps_as_events(tmp_path: Path, site: Site) -> None:
    with serving(buying(site)) as server:
        status, output, notes = await maniple(
            *("browse", "--json", "--mode", "execute", "Buy a hat"),
            folder=tmp_path,
            env=env(tmp_path, server),
        )
    events = [json.loads(line) for line in output.splitlines()]
    assert status == 0, notes
    acted = [one["data"]["action"]["name"] for one in events if one["data"].get("state") == "observing"]
    assert acted[:2] == ["go_to_url", "click_element"]
    assert page_in(notes).is_file()


async def test_a_question_of_the_browser_is_answered_in_the_conversation(tmp_path: Path, site: Site) -> None:
    ask = call("ask_human", inquire="Which hat?")
    script = {"browser": [ask, call("terminate", status="success", result="The blue one.")]}
    with serving(script) as server:
        status, output, notes = await maniple("browse", "Buy", folder=tmp_path, env=env(tmp_path, server))
        assert (status, output) == (3, ""), notes
        assert "Which hat?" in page_in(notes).read_text(encoding="utf-8")
        found = re.search(r"--thread (\S+)", notes)
        assert found, notes
        status, output, notes = await maniple(
            *("chat", "--thread", found[1], "blue"), folder=tmp_path, env=env(tmp_path, server)
        )
    assert (status, output) == (0, "The blue one.\n"), notes


@pytest.mark.slow
async def test_a_small_model_is_announced_as_read_only(tmp_path: Path, site: Site) -> None:
    with serving({"other": [reply("Hello")]}) as server:
        more = {"MANIPLE_MODELS__BASIC__PROFILE": "compact"}
        _, output, notes = await maniple(
            *("browse", "--url", f"{site.url}/", "Buy a hat"),
            folder=tmp_path,
            env=env(tmp_path, server, **more),
        )
    assert "Hats" in output
    assert "only reads the page" in notes
    assert notes.index("only reads") < notes.index("Page of the run")


async def test_without_chromium_the_install_command_is_shown(tmp_path: Path) -> None:
    with serving({"other": [reply("Hello")]}) as server:
        more = {"MANIPLE_BROWSER__EXECUTABLE": "/nowhere/chromium"}
        status, output, notes = await maniple(
            "browse", "Buy", folder=tmp_path, env=env(tmp_path, server, **more)
        )
        assert (status, output) == (1, "")
        assert "/nowhere/chromium" in notes and "To fix it:" in notes
        assert not server.requests


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mode", "quick", "Buy"], "--mode"),
        (["--url", "javascript:alert(1)", "Buy"], "not the address of a web page"),
        (["--url", "a b", "Buy"], "not the address of a web page"),
        ([" "], "the task is empty"),
    ],
)
async def test_what_cannot_be_meant_is_refused_before_anything_starts(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    status, output, notes = await maniple(
        "browse", *arguments, folder=tmp_path, env=environment(tmp_path, "")
    )
    assert (status, output) == (2, "")
    assert words in " ".join(notes.split())


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("shop.example", "https://shop.example"),
        ("shop.example:443/a", "https://shop.example:443/a"),
        ("shop.example:8080/a", "http://shop.example:8080/a"),
        ("localhost/a?b=c", "http://localhost/a?b=c"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("192.0.2.7", "http://192.0.2.7"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("http://shop.example", "http://shop.example"),
    ],
)
def test_an_address_without_a_scheme_is_what_it_most_likely_means(url: str, address: str) -> None:
    assert parse_start_page(url) == address


def test_the_modes_and_strategies_are_those_of_the_settings() -> None:
    assert (get_args(Mode), get_args(Strategy)) == (get_args(BrowserMode), get_args(BrowserStrategy))

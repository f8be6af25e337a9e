"""The model that answers: named on the page, replaced by a better one, and chosen for single questions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.openai_server import OpenAIServer, call, reply, serving
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess, environment, server_process

_TALK = {"coordinator": [reply("Hello.")], "other": [reply("ok")]}
_KEY = "sk-canary-typed-into-the-form"


@pytest.fixture
def small() -> Iterator[OpenAIServer]:
    with serving(_TALK) as server:
        yield server


@pytest.fixture
def better() -> Iterator[OpenAIServer]:
    replies = [reply("ok"), reply("ok"), call("ping"), reply("{}"), reply("No."), reply("ok")]
    with serving({**_TALK, "other": replies}) as server:
        yield server


@pytest.fixture
def service(small: OpenAIServer, better: OpenAIServer, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose first model stands in `.env`, with another one for vision."""
    env = {name: value for name, value in environment("", tmp_path).items() if not name.startswith("BASIC_")}
    first = f"BASIC_MODEL=small\nBASIC_BASE_URL={small.base_url}\n"
    (tmp_path / ".env").write_text(f"{first}VL_MODEL=seeing\nVL_BASE_URL={better.base_url}\n")
    with server_process(env, tmp_path) as process:
        yield process


def _open(browser: Browser, service: ServerProcess, **options: Any) -> Page:
    context = browser.new_context(base_url=service.url, locale="en-GB", **options)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto("/")
    return page


def _small_model(route: Route) -> None:
    """Answer as a service whose embedded model answers: that one takes minutes to be fetched."""
    body = route.fetch().json()
    route.fulfill(body=json.dumps({**body, "embedded": True}), content_type="application/json")


def test_a_better_model_is_tested_saved_and_answers_the_next_question(
    browser: Browser, service: ServerProcess, small: OpenAIServer, better: OpenAIServer, tmp_path: Path
):
    page = _open(browser, service)
    page.get_by_role("button", name="Model: small").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Address of the endpoint").fill("http://127.0.0.1:9/v1")
    form.get_by_label("Name of the model").fill("large")
    form.get_by_label("API key").fill(_KEY)
    form.get_by_role("button", name="Test").click()
    expect(form.locator(".notice.bad")).to_contain_text("127.0.0.1:9")
    form.get_by_label("Address of the endpoint").fill(better.base_url)
    form.get_by_role("button", name="Test").click()
    expect(form.locator(".notice li")).to_have_count(5)
    expect(form.locator(".notice")).to_contain_text("writes JSON: no")
    form.get_by_role("button", name="Save").click()
    expect(form.locator(".notice")).to_contain_text(str(tmp_path / ".env"))
    form.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Model: large")).to_be_visible()
    assert f"BASIC_API_KEY={_KEY}" in (tmp_path / ".env").read_text()
    ask(page, "Hello")
    standing(page, "Done")
    expect(page.locator(".standing")).to_contain_text("Model: large")
    assert small.stats["calls"] == 0
    page.context.close()


@pytest.mark.slow
def test_a_folder_without_settings_is_said_to_be_trusted_and_a_strangers_waits_for_the_command(
    browser: Browser, small: OpenAIServer, better: OpenAIServer, tmp_path: Path
):
    folder = tmp_path / "empty"
    folder.mkdir(mode=0o755)
    env = environment(small.base_url, tmp_path, MANIPLE_TRUSTED_FOLDERS="")
    stranger = folder / "conf.yaml"
    with server_process(env, folder) as service:
        page = _open(browser, service)
        stranger.write_text("server: {}")
        page.get_by_role("button", name="Model: scripted").click()
        form = page.get_by_role("dialog")
        expect(form).to_contain_text(f"maniple trust {folder}")
        expect(form.get_by_label("Name of the model")).to_have_count(0)
        stranger.unlink()
        form.get_by_role("button", name="Try again").click()
        expect(form).to_contain_text(f"{folder} has no settings yet")
        form.get_by_label("Address of the endpoint").fill(better.base_url)
        form.get_by_label("Name of the model").fill("large")
        form.get_by_role("button", name="Save").click()
        expect(form.locator(".notice")).to_contain_text(str(folder / ".env"))
        expect(form).not_to_contain_text("has no settings yet")
        page.context.close()
    assert "BASIC_MODEL=large" in (folder / ".env").read_text()


def test_the_small_model_is_said_to_be_one_with_a_way_to_a_better_one(
    browser: Browser, service: ServerProcess
):
    page = _open(browser, service)
    page.route("**/api/models", _small_model)
    page.reload()
    note = page.locator(".model-note")
    expect(note).to_contain_text("small")
    note.get_by_role("button").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.context.close()


def test_a_question_goes_to_the_model_that_is_chosen_for_it_and_no_cost_is_limited_without_prices(
    browser: Browser, service: ServerProcess, small: OpenAIServer
):
    page = _open(browser, service)
    page.get_by_label("Model", exact=True).select_option("seeing")
    page.locator("summary", has_text="Limits").click()
    expect(page.get_by_label("tokens")).to_be_visible()
    expect(page.get_by_label("cost")).to_have_count(0)
    page.keyboard.press("Escape")
    ask(page, "Hello")
    standing(page, "Done")
    expect(page.locator(".standing")).to_contain_text("Model: seeing")
    assert small.stats["calls"] == 0
    page.reload()
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_label("Model", exact=True)).to_have_value("seeing")
    page.context.close()


def test_another_language_keeps_the_draft_and_its_files(page: Page):
    page.locator("input[type=file]").set_input_files(
        {"name": "a.csv", "mimeType": "text/csv", "buffer": b"a"}
    )
    page.get_by_label("Your question").fill("How much?")
    page.get_by_label("Language").select_option("zh")
    expect(page.get_by_label("你的问题")).to_have_value("How much?")
    expect(page.locator(".chosen li")).to_contain_text("a.csv")
    assert page.locator("html").get_attribute("lang") == "zh"
    page.get_by_label("语言").select_option("en")
    expect(page.get_by_label("Your question")).to_have_value("How much?")
    with page.expect_response(
        lambda one: one.url.endswith("/files") and one.request.method == "POST"
    ) as sent:
        page.keyboard.press("Tab")
        page.get_by_role("button", name="Send").click()
    assert sent.value.ok


def test_nothing_moves_for_who_wants_less_motion(page: Page):
    page.emulate_media(reduced_motion="reduce")
    moving = """() => {
        const one = Object.assign(document.createElement("span"), { className: "pulse" });
        document.body.append(one);
        const found = document.getAnimations().length;
        one.remove();
        return found;
    }"""
    assert page.evaluate(moving) == 0
    page.emulate_media(reduced_motion="no-preference")
    assert page.evaluate(moving) == 1


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_note_and_form_fit_into_the_window(
    browser: Browser, service: ServerProcess, width: int, scheme: Any, locale: str
):
    context = browser.new_context(
        base_url=service.url, locale=locale, viewport={"width": width, "height": 720}, color_scheme=scheme
    )
    page = context.new_page()
    page.route("**/api/models", _small_model)
    page.goto("/")
    page.locator(".model-note button").click()
    page.locator(".connect").wait_for()
    for name in (".connect", ".connect button.main"):
        box = page.locator(name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 720
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()

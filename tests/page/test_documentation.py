"""The documentation of the HTTP API at /docs, in Chromium."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.serving import ServerProcess


@pytest.mark.slow
def test_the_documentation_works_from_own_files_alone(page: Page, server: ServerProcess) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/docs")
    page.locator(".opblock", has_text="/healthz").locator(".opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    answer = page.locator(".live-responses-table")
    expect(answer.locator("tbody .response-col_status")).to_contain_text("200")
    # Pictures within the style sheet are data; all else came from the service.
    origins = {urlsplit(url)[:2] for url in asked if not url.startswith("data:")}
    assert origins == {urlsplit(server.url)[:2]}


@pytest.mark.slow
def test_the_documentation_changes_something_in_its_own_service(page: Page) -> None:
    page.goto("/docs")
    block = page.locator(".opblock-post").filter(has=page.locator("[data-path='/api/threads']"))
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    block.get_by_role("button", name="Execute").click()
    expect(block.locator(".live-responses-table tbody .response-col_status")).to_contain_text("201")

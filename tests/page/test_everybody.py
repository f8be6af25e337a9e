"""Everybody can use every view: with a screen reader, without a mouse, on a phone, on a wall, in either language."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.page.views import VIEWS, View, seeded_server, settle, shown
from tests.serving import ROOT, ServerProcess

AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
SHOTS = ROOT / "tests/page/shots"
SHAPES = (
    ("en-GB", "light", 1280, 800),
    ("en-GB", "dark", 375, 800),
    ("zh-CN", "light", 375, 800),
    ("zh-CN", "dark", 1280, 800),
)
"""Language, scheme and size: each language in both schemes, each size in both languages."""
_FAULTS = """async () => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const told = await axe.run({ runOnly: tags, rules: { "target-size": { enabled: true } }, resultTypes: ["violations"] });
    return told.violations.filter(one => ["serious", "critical"].includes(one.impact))
        .map(one => `${one.id}: ${one.nodes.map(node => node.html + node.failureSummary).join("; ")}`);
}"""
_SIDEWAYS = """() => [document.scrollingElement, ...document.querySelectorAll(".conversation, .threads, .foot")]
    .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.className || one.tagName)"""


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with seeded_server(tmp_path_factory.mktemp("seeded")) as process:
        yield process


def tab(browser: Browser, width: int, height: int, **options: Any) -> Page:
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(30_000)
    return context.new_page()


@pytest.mark.skipif(not AXE.is_file(), reason="bash setup.sh dev installs axe-core")
@pytest.mark.parametrize(("locale", "scheme", "width", "height"), SHAPES)
def test_no_view_has_a_serious_fault(
    browser: Browser, seeded: ServerProcess, locale: str, scheme: str, width: int, height: int
):
    page = tab(browser, width, height, locale=locale, color_scheme=scheme)
    page.add_init_script(path=AXE)
    SHOTS.mkdir(exist_ok=True)
    found: dict[str, Any] = {}
    for view in VIEWS:
        with shown(page, view, seeded.url):
            settle(page)
            page.screenshot(path=SHOTS / f"{view.name}-{locale[:2]}-{scheme}-{width}.png")
            if wrong := page.evaluate(_FAULTS) + page.evaluate(_SIDEWAYS):
                found[view.name] = wrong
    page.context.close()
    assert found == {}

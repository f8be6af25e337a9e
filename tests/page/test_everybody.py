"""Everybody can use every view: with a screen reader, on a phone, on a wall, in either language."""

from collections.abc import Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.page.views import VIEWS, View, settle, shown
from tests.serving import ROOT, ServerProcess
from tests.sizes import rest_is_slow

AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
SHAPES = (
    ("en-GB", 1280, ("light", "dark")),
    ("en-GB", 375, ("light", "dark")),
    ("zh-CN", 375, ("light", "dark")),
    ("zh-CN", 1280, ("light", "dark")),
)
"""Language, width and schemes."""
_WALL = (3840, 2160)
_SOME = {"hello", "report", "work", "plan-editor"}
"""The views with most of the controls, which `make test` looks at."""
_WHOLE = {"hello", "list", "key", "reading", "search", "connect"}
_FAULTS = """async ([whole, onlyColours]) => {
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
    const rules = { "target-size": { enabled: true } };
    const colours = { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } };
    const options = { ...(onlyColours ? colours : { runOnly: tags, rules }), resultTypes: ["violations"] };
    const told = await axe.run(whole ? document : "main", options);
    const serious = told.violations.filter(one => ["serious", "critical"].includes(one.impact));
    const faults = [];
    for (const { id, nodes } of serious) {
        const left = [];
        for (const node of nodes) {
            // What is half hidden by the edge of what scrolls is as large as it is when it is scrolled to.
            const element = document.querySelector(node.target[0]);
            if (id === "target-size") element.scrollIntoView({ block: "center" });
            const told = id !== "target-size" || await axe.run(element, { runOnly: [id] });
            if (told === true || told.violations.length) left.push(node.html + node.failureSummary);
        }
        if (left.length) faults.push(`${id}: ${left.join("; ")}`);
    }
    return faults;
}"""
_CUT = """() => [
    ...[...document.querySelectorAll("html, .conversation, .threads, .foot")]
        .filter(one => one.scrollWidth > one.clientWidth + 1),
    ...[...document.querySelectorAll("button, input, textarea, select, summary, fieldset")].filter(one => {
        const { left, right, width } = one.getBoundingClientRect();
        return one.checkVisibility() && width > 1 && (left < 0 || right > innerWidth + 1);
    }),
].map(one => one.outerHTML.slice(0, 80))"""
_SMALLEST = """() => Math.min(...[...document.querySelectorAll("main *")]
    .filter(one => one.checkVisibility() && [...one.childNodes].some(child => child.data?.trim()))
    .map(one => parseFloat(getComputedStyle(one).fontSize)))"""


def tab(browser: Browser, width: int, height: int, **options: Any) -> Page:
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(120_000)
    return context.new_page()


SOME = [view for view in VIEWS if view.name in _SOME]


@pytest.mark.skipif(not AXE.is_file(), reason="bash setup.sh dev installs axe-core")
@pytest.mark.parametrize(
    ("locale", "width", "schemes", "views"),
    rest_is_slow([(*SHAPES[0], SOME), *((*shape, VIEWS) for shape in SHAPES)], 1),
)
def test_no_view_has_a_serious_fault(
    browser: Browser,
    seeded: ServerProcess,
    locale: str,
    width: int,
    schemes: tuple[str, ...],
    views: Sequence[View],
):
    page = tab(browser, width, 800, locale=locale)
    page.add_init_script(path=AXE)
    found: dict[str, Any] = {}
    for view in views:
        with shown(page, view, seeded.url):
            for scheme in schemes:
                settle(page, color_scheme=scheme)
                # What stands beside is the same in most of them; a further scheme differs in colours alone.
                if wrong := page.evaluate(_FAULTS, [view.name in _WHOLE, scheme != schemes[0]]):
                    found[f"{view.name} {scheme}"] = wrong
    page.context.close()
    assert found == {}


@pytest.mark.slow
def test_nothing_is_cut_from_320_pixels_to_a_wall(browser: Browser, seeded: ServerProcess):
    """320 is also what is left of 1280 at a zoom of 400 %."""
    page = tab(browser, 320, 640, locale="en-GB")
    found: dict[str, Any] = {}
    for view in VIEWS:
        with shown(page, view, seeded.url):
            for width, height in ((320, 640), (640, 400), _WALL):
                page.set_viewport_size({"width": width, "height": height})
                settle(page)
                if cut := page.evaluate(_CUT):
                    found[f"{view.name} {width}"] = cut
            assert page.evaluate(_SMALLEST) >= 16, "readable from where one sees a whole wall"
        page.set_viewport_size({"width": 320, "height": 640})
    page.context.close()
    assert found == {}

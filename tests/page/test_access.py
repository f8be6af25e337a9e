"""Everybody can use every view: axe-core finds no serious fault, and a keyboard is enough."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.serving import ROOT

AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
REPORT = """# Report

| way | seconds |
|:----|--------:|
| by hand | 1.0 |

A [link](https://e.test/a), `code`, and $x^2$.

```python
print(1 + 3)
```

> A remark.
"""
_FAULTS = """async () => (await axe.run()).violations
    .filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => `${one.id}: ${one.nodes.map(node => node.html + node.failureSummary).join("; ")}`)"""


def faults(page: Page, name: str, folder: Path) -> dict[str, Any]:
    """Return what axe finds in light and dark, on a wide screen and a narrow one; keep a picture of each."""
    found: dict[str, Any] = {}
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 375)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        page.screenshot(path=folder / f"{name}-{scheme}-{width}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if wrong := page.evaluate(_FAULTS):
            found[f"{name} {scheme} {width}"] = wrong
    page.set_viewport_size({"width": 1280, "height": 800})
    return found


@pytest.mark.skipif(not AXE.is_file(), reason="bash setup.sh dev installs axe-core")
def test_no_view_has_a_serious_fault(page: Page, model: OpenAIServer, tmp_path: Path):
    page.add_init_script(path=AXE)
    page.goto("/")
    expect(page.get_by_role("heading")).to_be_visible()
    found = faults(page, "hello", tmp_path)
    model.reset(
        {**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")], "reporter": [reply(REPORT)]}
    )
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    standing(page, "Waits for you")
    found |= faults(page, "review", tmp_path)
    page.get_by_role("button", name="Accept the plan").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    found |= faults(page, "approval", tmp_path)
    page.get_by_role("button", name="Approve").click()
    standing(page, "Done")
    page.get_by_text("Work", exact=True).click()
    page.locator(".call > summary").click()
    found |= faults(page, "report", tmp_path)
    assert found == {}


def test_a_keyboard_is_enough(page: Page):
    page.get_by_role("link", name="New conversation").focus()
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.ariaLabel || document.activeElement.innerText"))
        if reached[-1] == "Your question":
            break
    assert reached[-1] == "Your question", reached
    page.keyboard.type("1+3=?")
    page.keyboard.press("Enter")
    standing(page, "Done")
    page.get_by_text("Work", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("python_repl_tool")).to_be_visible()


def test_the_page_speaks_chinese_where_the_browser_does(page: Page):
    context = page.context.browser.new_context(base_url=page.url, locale="zh-CN")  # type: ignore[union-attr]
    tab = context.new_page()
    tab.goto("/")
    expect(tab.get_by_role("heading", name="团队要做什么?")).to_be_visible()
    assert tab.locator("html").get_attribute("lang") == "zh"
    context.close()

import json

import pytest

from maniple.browser import Link, PageText
from maniple.errors import BrowserError
from maniple.tools.browser import browser_tool

pytestmark = pytest.mark.anyio


class Window:
    """A browser that shows one page for every address."""

    def __init__(self, page: PageText | None = None) -> None:
        self.page = page or PageText("https://a.test/", "Title", "Text.", ())
        self.opened: list[tuple[str, str]] = []

    async def read(self, url: str, *, thread: str) -> PageText:
        self.opened.append((url, thread))
        return self.page


async def shown(page: PageText) -> str:
    said = json.loads(await browser_tool(Window(page)).ainvoke({"instruction": "open https://a.test/"}))
    assert said["generated_gif_path"] is None
    assert list(said) == ["result_content", "generated_gif_path"]
    return said["result_content"]


async def test_the_page_comes_with_title_address_text_and_links() -> None:
    links = (Link("First", "https://a.test/1"), Link("", "https://a.test/2"))
    assert await shown(PageText("https://a.test/", "Title", "\nText.\n", links, 200)) == (
        "# Title\n\nSource: https://a.test/\n\nText.\n\n"
        "Links:\n- [First](https://a.test/1)\n- [https://a.test/2](https://a.test/2)"
    )


async def test_error_pages_and_empty_pages_are_reported() -> None:
    said = await shown(PageText("https://a.test/", "", " ", (), 404))
    assert said.startswith("# https://a.test/\n\nSource: https://a.test/ ")
    assert "(the server answered 404)" in said and "(not found)" in said
    assert said.endswith("\n\n(The page shows no text.)")


async def test_a_long_page_is_cut() -> None:
    links = tuple(Link(str(n), f"https://a.test/{n}") for n in range(100))
    said = await shown(PageText("https://a.test/", "Title", "x" * 50_000, links))
    assert "first 12,000 of 50,000" in said
    assert said.endswith("(70 more)")
    assert len(said) < 15_000


@pytest.mark.parametrize(
    ("instruction", "url"),
    [
        ("Go to https://a.test/x?y=1#z and read it.", "https://a.test/x?y=1#z"),
        ("Read https://a.test. Then https://b.test!", "https://a.test"),
        ("打开 https://a.test/页面，然后总结", "https://a.test/页面"),
        ('Open "https://a.test/a_b" (the first page)', "https://a.test/a_b"),
        ("See [this](http://a.test/1) and <http://b.test>", "http://a.test/1"),
        ("Read https://a.test/Arch_(bridge) (the page).", "https://a.test/Arch_(bridge)"),
        ("Read it (https://a.test/x).", "https://a.test/x"),
        ("HTTPS://A.test/", "HTTPS://A.test/"),
    ],
)
async def test_the_first_address_of_the_instruction_is_opened(instruction: str, url: str) -> None:
    window = Window()
    await browser_tool(window).ainvoke({"instruction": instruction})
    assert window.opened == [(url, "local")]


@pytest.mark.parametrize("instruction", ["", "Find the weather.", "open example.com", "file:///etc/passwd"])
async def test_an_instruction_without_an_address_is_an_error_for_the_model(instruction: str) -> None:
    window = Window()
    with pytest.raises(BrowserError, match="full address"):
        await browser_tool(window).ainvoke({"instruction": instruction})
    assert window.opened == []


def test_the_tools_name_and_argument_are_those_of_the_wire() -> None:
    tool = browser_tool(Window())
    assert (tool.name, list(tool.args)) == ("browser", ["instruction"])
    assert len(tool.description.split()) < 25

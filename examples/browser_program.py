"""A browser program of your own, without agents and models: search a site by its own search field.

    python examples/browser_program.py https://en.wikipedia.org "Roman maniple"

Prints title, address and text of the page that the search leads to, and saves the window, with the index on
each control, as found.jpeg. It needs a Chromium; without one it says which command installs it. Only public
addresses can be opened, and the networks of the setting `browser.allow_private`.
"""

import asyncio
import sys
from pathlib import Path

from maniple import BrowserError, BrowserState, Page, Unavailable, load_settings, open_browser

PICTURE = Path("found.jpeg")
TEXT_CHARACTERS = 2_000
FIELDS = ("input search", "searchbox", "combobox", "input text", "input")


async def main(address: str, words: str) -> None:
    settings = await asyncio.to_thread(load_settings)
    async with open_browser(settings.browser) as browser:
        page = await browser.page("search")
        await page.act({"action": "go_to_url", "url": address})
        await search(page, words)
        found = await page.observe()
        text = await page.read()
    print(found.title, found.url, text.text[:TEXT_CHARACTERS], *found.notices, sep="\n")
    if found.screenshot:
        await asyncio.to_thread(PICTURE.write_bytes, found.screenshot)
        print("Picture:", PICTURE)


async def search(page: Page, words: str) -> None:
    # An index belongs to the last state: where the page has changed since, the action fails.
    field = find_field(await page.observe(screenshot=False))
    await page.act({"action": "input_text", "index": field, "text": words})
    await page.act({"action": "send_keys", "keys": "Enter"})


def find_field(state: BrowserState) -> int:
    """Return the index of the field to search in; raises `BrowserError` if there is none."""
    for role in FIELDS:
        for element in state.elements:
            if element.role == role:
                return element.index
    raise BrowserError(f"{state.url} has no search field. Its controls:\n{state.interactive_elements}")


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:3]))
    except (BrowserError, Unavailable) as error:
        sys.exit(str(error))

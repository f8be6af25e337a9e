"""Which addresses a browser may open: by the caller's rule, else by the settings."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from maniple.browser import Page, open_browser
from maniple.capabilities import open_capabilities
from maniple.capabilities.base import TeamBrowser
from maniple.config import BrowserSettings, FetchSettings, SandboxSettings, Settings
from maniple.errors import BrowserError, FetchError

pytestmark = pytest.mark.anyio

# Nobody is there: it is asked only after the address was allowed.
NOBODY = {"backend": "sandbox", "sandbox_url": "http://127.0.0.1:9", "allow_private": ("127.0.0.2/32",)}
SETTINGS = BrowserSettings.model_validate(NOBODY)


async def refusal(page: Page, host: str) -> str:
    with pytest.raises(BrowserError) as refused:
        await page.act({"action": "go_to_url", "url": f"http://{host}/"})
    return str(refused.value)


async def test_a_given_rule_overrides_the_networks_of_the_settings() -> None:
    async def only_names(host: str, port: int) -> str:
        raise FetchError(f"{host} is closed today.")

    async with open_browser(SETTINGS, only_names) as browser:
        assert "127.0.0.2 is closed today." in await refusal(await browser.page("t"), "127.0.0.2")


async def test_the_team_goes_where_the_settings_of_its_browser_open_a_network(tmp_path: Path) -> None:
    settings = Settings(
        browser=SETTINGS,
        fetch=FetchSettings(allow_private=("127.0.0.3/32",)),
        sandbox=SandboxSettings(backend="off"),
        data_dir=tmp_path / "data",
        cache_dir=tmp_path / "cache",
    )
    async with AsyncExitStack() as stack:
        found = (await open_capabilities(settings, stack)).service(TeamBrowser)
        assert found is not None
        page = await found.browser.page("t")
        assert "cannot be reached" in await refusal(page, "127.0.0.2")
        assert "not public" in await refusal(page, "127.0.0.3")

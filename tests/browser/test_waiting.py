"""How long the browser waits when it is told to."""

from types import SimpleNamespace
from typing import Any

import pytest

from maniple.browser import PageServices
from maniple.browser.actions import parse_action
from maniple.browser.drivers.actions import tab_actions
from maniple.config import BrowserSettings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("asked", "waited"), [(0, 0), (4.9, 4.9), (5, 5), (5.1, 5), (1e9, 5)])
async def test_it_waits_as_long_as_it_was_told_and_never_longer_than_allowed(
    monkeypatch: pytest.MonkeyPatch, asked: float, waited: float
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(tab_actions.asyncio, "sleep", sleep)
    window: Any = SimpleNamespace(settings=BrowserSettings(max_wait_seconds=5))
    action: Any = parse_action({"action": "wait", "seconds": asked})
    done = await tab_actions.wait(window, action, PageServices())
    assert slept == [waited]
    assert f"{waited:g} seconds" in done.text

"""How many of MiniWoB's tasks can be solved through the browser's actions, by what the state says alone."""

import asyncio
from pathlib import Path

import pytest

from maniple.browser import Browser, Page
from maniple.errors import ManipleError
from tests.browser.miniwob.clicking import CLICKING, Policy
from tests.browser.miniwob.episode import Episode
from tests.browser.miniwob.tasks import Tasks
from tests.browser.miniwob.working import WORKING
from tests.browser.miniwob.writing import WRITING

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]

POLICIES: dict[str, Policy] = CLICKING | WRITING | WORKING
FLOOR = Path(__file__).with_name("floor.txt")
_AT_ONCE = 3
_SEED = 7
_END_SECONDS = 3.0


async def test_the_tasks_that_were_solved_before_are_solved(tasks: Tasks, browser: Browser) -> None:
    todo = list(POLICIES)
    solved: set[str] = set()
    reasons: dict[str, str] = {}

    async def work(page: Page) -> None:
        while todo:
            name = todo.pop(0)
            reasons[name] = await _play(tasks, page, name)
            if not reasons[name]:
                solved.add(name)

    await asyncio.gather(*[work(await browser.page(str(at))) for at in range(_AT_ONCE)])
    floor = set(FLOOR.read_text(encoding="utf-8").split())
    print(f"MiniWoB: {len(solved)} of {len(POLICIES)} solved: {', '.join(sorted(solved))}")
    print(f"tried: {', '.join(sorted(POLICIES.keys() - solved)) or 'all of them'}")
    assert {name: reasons[name] for name in sorted(floor - solved)} == {}


async def _play(tasks: Tasks, page: Page, name: str) -> str:
    """Why the task was not solved; "" when it was."""
    task = Episode(page)
    reason = "was answered wrongly"
    try:
        await page.act({"action": "go_to_url", "url": tasks.begin(name, _SEED)})
        await task.see()
        await POLICIES[name](task)
    # What a policy does not find in the state is missing there.
    except (ManipleError, RuntimeError, LookupError, ValueError) as error:
        reason = f"{error!r} at {task.text!r}"
    return "" if await tasks.worth(name, _END_SECONDS) > 0 else reason

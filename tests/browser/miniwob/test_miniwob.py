"""How many MiniWoB tasks can be solved with the browser's actions and the state alone."""

import asyncio
from pathlib import Path

import pytest

from maniple.browser import Browser, Page
from maniple.errors import ManipleError
from tests.browser.miniwob.clicking import CLICKING, Policy
from tests.browser.miniwob.episode import Episode
from tests.browser.miniwob.tasks import Tasks, folder
from tests.browser.miniwob.working import WORKING
from tests.browser.miniwob.writing import WRITING
from tests.sizes import sizes

pytestmark = pytest.mark.timeout(400)

POLICIES: dict[str, Policy] = CLICKING | WRITING | WORKING
# The other tasks, by what they want that none of the actions does or that no text says.
BEYOND = {
    "to drag": (
        "daily-calendar drag-box drag-circle drag-cube drag-items drag-items-grid drag-shapes drag-shapes-2 "
        "drag-single-shape drag-sort-numbers draw-circle draw-line highlight-text highlight-text-2 "
        "resize-textarea"
    ),
    "to point at a place where nothing is": "bisect-angle circle-center find-midpoint hot-cold right-angle",
    "to hold the mouse over something": "chase-circle hover-shape",
    "to be faster than looks are": "moving-items simon-says",
    "to see a picture": "count-sides number-checkboxes use-colorwheel-2 visual-addition",
}
FLOOR = Path(__file__).with_name("floor.txt")
_AT_ONCE = 3
_SEED = 7
_END_SECONDS = 3.0


@pytest.mark.anyio
@pytest.mark.parametrize("every", sizes(16, 1))
async def test_the_tasks_that_were_solved_before_are_solved(
    tasks: Tasks, browser: Browser, every: int
) -> None:
    """Play each task in `every`."""
    chosen = list(POLICIES)[::every]
    todo = [*chosen]
    reasons: dict[str, str] = {}

    async def work(page: Page) -> None:
        while todo:
            name = todo.pop(0)
            reasons[name] = await _play(tasks, page, name)

    pages = [await browser.page(str(at)) for at in range(_AT_ONCE)]
    await asyncio.gather(*map(work, pages))
    # Menus and stocks that move by the clock are another game on a machine that is busy: again, alone.
    for _ in range(3):
        todo += [name for name in chosen if reasons[name]]
        await work(pages[0])
    solved = {name for name in chosen if not reasons[name]}
    floor = set(FLOOR.read_text(encoding="utf-8").split()) & set(chosen)
    print(f"MiniWoB: {len(solved)} of {len(chosen)} solved: {', '.join(sorted(solved))}")
    print(f"tried and not solved: {', '.join(sorted(set(chosen) - solved)) or 'none'}")
    assert {name: reasons[name] for name in sorted(floor - solved)} == {}


def test_each_task_has_a_policy_or_a_reason() -> None:
    html = folder()
    assert html is not None
    beyond = {name for names in BEYOND.values() for name in names.split()}
    assert sorted(POLICIES.keys() | beyond) == sorted(page.stem for page in (html / "miniwob").glob("*.html"))
    assert not POLICIES.keys() & beyond


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

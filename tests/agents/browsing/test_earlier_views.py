"""Views that are gone are files, and those that are still there are not."""

from pathlib import Path

import pytest

from maniple.agents.browsing.earlier_views import EarlierViews
from maniple.browser import BrowserState, ScrollInfo
from maniple.tools.items import StoredResults
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio


def shown(*lines: str, url: str = "https://e.test/stock") -> BrowserState:
    text = "\n".join(f"[{number}]<row>{line}" for number, line in enumerate(lines))
    return BrowserState("1", url, "Stock", (), text, (), ScrollInfo(0, 0), 800, None)


def rows(first: int) -> list[str]:
    return [f"Article {number}" for number in range(first, first + 10)]


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


@pytest.fixture
def views(workspaces: Workspaces) -> EarlierViews:
    return EarlierViews(StoredResults(workspaces))


def stored(workspaces: Workspaces) -> list[str]:
    place = workspaces.locate("local")
    paths = [path for path, _ in place.files(100, "tool-results")]
    return [place.read(path, 10_000).content.decode() for path in paths]


async def test_a_view_that_another_one_replaced_is_a_file(
    views: EarlierViews, workspaces: Workspaces
) -> None:
    assert await views.follow(shown(*rows(0))) == ""
    assert await views.follow(shown(*rows(10))) != ""
    [text] = stored(workspaces)
    assert "https://e.test/stock" in text
    assert all(row in text for row in rows(0))


async def test_what_is_still_shown_is_no_earlier_view(views: EarlierViews, workspaces: Workspaces) -> None:
    await views.follow(shown(*rows(0)))
    assert await views.follow(shown(*rows(0)[:8], "A message")) == ""
    assert stored(workspaces) == []


async def test_another_address_replaces_a_view_that_looks_the_same(
    views: EarlierViews, workspaces: Workspaces
) -> None:
    await views.follow(shown(*rows(0)))
    await views.follow(shown(*rows(0), url="https://e.test/other"))
    assert len(stored(workspaces)) == 1


async def test_an_empty_tab_is_not_worth_a_file(views: EarlierViews, workspaces: Workspaces) -> None:
    await views.follow(shown("Wait"))
    assert await views.follow(shown(*rows(0))) == ""
    assert stored(workspaces) == []


async def test_the_newest_eight_are_named(views: EarlierViews) -> None:
    named = [await views.follow(shown(*rows(10 * number))) for number in range(12)]
    assert [line.count("tool-results/") for line in named] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8]

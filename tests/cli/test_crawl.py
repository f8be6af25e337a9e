"""`maniple crawl`, as its own process reads a page."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.processes import MANIPLE, environment, maniple, on_terminal
from tests.crawler.web import Reply, Site, open_site

pytestmark = pytest.mark.anyio
PAGE = Reply("<title>News</title><h1>Tea</h1><p>It costs <b>3</b> euros\x1b[31m. <a href='/more'>More</a>.")


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/a": PAGE}) as site:
        yield site


def env(folder: Path, **more: str) -> dict[str, str]:
    return environment(folder, "", MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8", **more)


async def test_a_page_is_printed_as_the_tool_gives_it(tmp_path: Path, site: Site) -> None:
    status, output, notes = await maniple("crawl", f"{site.url}/a", folder=tmp_path, env=env(tmp_path))
    text = f"# News\n\nSource: {site.url}/a\n\n# Tea\n\nIt costs **3** euros. [More]({site.url}/more).\n"
    assert (status, output, notes) == (0, text, "")


async def test_a_program_gets_one_object(tmp_path: Path, site: Site) -> None:
    _, output, _ = await maniple("crawl", "--json", f"{site.url}/a", folder=tmp_path, env=env(tmp_path))
    said = json.loads(output)
    assert (said["url"], said["title"]) == (f"{site.url}/a", "News")
    assert said["markdown"].startswith("# Tea")
    keys = ["url", "title", "markdown", "sections", "first", "last", "note", "kind", "publication"]
    assert list(said) == keys
    assert set(said["publication"]) == {"published", "author", "publisher"}


async def test_a_long_page_is_read_on_at_a_section(tmp_path: Path, site: Site) -> None:
    site.pages["/long"] = Reply(
        "".join(f"<h2>Part {n}</h2><p>{f'Words of {n}. ' * 300}</p>" for n in "abcdef")
    )
    arguments = ("crawl", f"{site.url}/long", "--section")
    _, output, _ = await maniple(*arguments, "Part e", folder=tmp_path, env=env(tmp_path))
    assert "Sections 5 to 6 of 6." in output and "Words of e." in output and "Words of a." not in output
    status, output, notes = await maniple(*arguments, "Part z", folder=tmp_path, env=env(tmp_path))
    assert (status, output) == (1, "")
    assert "no section 'Part z'" in notes


async def test_an_unreadable_page_is_reported_with_the_next_step(tmp_path: Path, site: Site) -> None:
    status, output, notes = await maniple("crawl", f"{site.url}/b", folder=tmp_path, env=env(tmp_path))
    assert (status, output) == (1, "")
    assert "answered 404 (Not Found)" in notes


async def test_an_internal_page_is_not_read_unless_its_network_is_opened(tmp_path: Path, site: Site) -> None:
    closed = environment(tmp_path, "")
    status, output, notes = await maniple("crawl", f"{site.url}/a", folder=tmp_path, env=closed)
    assert (status, output, site.requests) == (1, "", [])
    assert "fetch.allow_private" in notes


async def test_what_search_found_in_the_folder_is_read_by_its_address(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "toll list.md").write_text("# Tolls\n\nA lorry pays nine crowns.")
    equipped = env(tmp_path, MANIPLE_SEARCH__FOLDER=str(tmp_path / "documents"))
    _, found, _ = await maniple(
        "search", "--json", "--provider", "folder", "lorry", folder=tmp_path, env=equipped
    )
    [hit] = json.loads(found)
    address = hit["url"]
    status, output, notes = await maniple("crawl", address, folder=tmp_path, env=equipped)
    assert (address, status, notes) == ("folder:toll%20list.md", 0, "")
    assert "A lorry pays nine crowns." in output
    status, _, notes = await maniple("crawl", "folder:gone.md", folder=tmp_path, env=equipped)
    assert (status, "folder:gone.md cannot be read" in notes) == (1, True)


async def test_wrong_settings_are_wrong_usage(tmp_path: Path) -> None:
    wrong = environment(tmp_path, "", MANIPLE_FETCH__ALLOW_PRIVATE="10.0.0.1/8")
    status, _, notes = await maniple("crawl", "https://a.test", folder=tmp_path, env=wrong)
    assert (status, "fetch.allow_private" in notes) == (2, True)


async def test_on_a_terminal_the_page_is_drawn_and_what_it_would_do_to_it_left_out(
    tmp_path: Path, site: Site
) -> None:
    arguments = ("crawl", f"{site.url}/a")
    async with on_terminal(*arguments, folder=tmp_path, env=env(tmp_path), program=MANIPLE) as terminal:
        await terminal.see("It costs 3 euros")
        assert await terminal.ended() == 0
    assert "\x1b[1m3\x1b[0m" in terminal.raw and "\x1b[31m" not in terminal.raw

"""`maniple search` at a terminal, in a pipe and for programs."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.processes import environment, maniple
from tests.crawler.web import Site, open_site
from tests.search.responses import as_json

pytestmark = pytest.mark.anyio

FOUND = {
    "results": [
        {"title": "Arch\x1b[31m", "url": "https://a.test/", "content": "An\narch.", "score": 0.9},
        {"title": "Beam", "url": "https://b.test/", "content": "A beam."},
    ]
}


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/search": as_json(FOUND)}) as site:
        yield site


def env_of(folder: Path, site: Site, **more: str) -> dict[str, str]:
    given = {
        "MANIPLE_SEARCH__PROVIDERS": "tavily,searxng",
        "MANIPLE_SEARCH__TAVILY_BASE_URL": site.url,
        "TAVILY_API_KEY": "tvly-canary-0123456789",
        "SEARXNG_URL": f"{site.url}/none",
    }
    return environment(folder, "", **{**given, **more})


async def test_results_are_listed_with_who_found_them_and_nothing_that_a_terminal_obeys(
    site: Site, tmp_path: Path
) -> None:
    status, output, notes = await maniple(
        "search", "stone", "arch", folder=tmp_path, env=env_of(tmp_path, site)
    )
    assert (status, notes) == (0, "")
    assert output == (
        "1. Arch  tavily\nhttps://a.test/\nAn arch.\n\n2. Beam  tavily\nhttps://b.test/\nA beam.\n"
    )


async def test_json_is_what_the_tool_gives(site: Site, tmp_path: Path) -> None:
    arguments = ("search", "--json", "--limit", "1", "arch")
    status, output, _ = await maniple(*arguments, folder=tmp_path, env=env_of(tmp_path, site))
    hit = {"title": "Arch\x1b[31m", "url": "https://a.test/", "content": "An\narch.", "score": 0.9}
    assert (status, json.loads(output)) == (0, [{**hit, "source": "tavily"}])


async def test_failed_providers_are_listed_beside_the_results(site: Site, tmp_path: Path) -> None:
    env = env_of(tmp_path, site, MANIPLE_SEARCH__PROVIDERS="searxng,tavily")
    status, output, notes = await maniple("search", "arch", folder=tmp_path, env=env)
    assert (status, output.splitlines()[0]) == (0, "1. Arch  tavily")
    assert re.fullmatch(r"searxng: .*404.*SEARXNG_URL\.\n", notes)


async def test_nothing_found_is_no_failure(site: Site, tmp_path: Path) -> None:
    site.pages["/search"] = as_json({"results": []})
    env = env_of(tmp_path, site, MANIPLE_SEARCH__PROVIDERS="tavily")
    for arguments, printed in ((("search", "arch"), ""), (("search", "--json", "arch"), "[]\n")):
        assert await maniple(*arguments, folder=tmp_path, env=env) == (0, printed, "Nothing was found.\n")


async def test_only_the_named_provider_is_used(site: Site, tmp_path: Path) -> None:
    env = env_of(tmp_path, site)
    status, output, notes = await maniple("search", "--provider", "searxng", "x", folder=tmp_path, env=env)
    assert (status, output) == (1, "")
    assert re.search(r"searxng: .*404.*SEARXNG_URL", notes)
    assert [path.partition("?")[0] for _, path, _ in site.requests] == ["/none/search"]


async def test_a_wrong_name_and_a_missing_key_are_wrong_usage(site: Site, tmp_path: Path) -> None:
    env = env_of(tmp_path, site)
    status, _, notes = await maniple("search", "--provider", "google", "x", folder=tmp_path, env=env)
    assert status == 2
    assert "wikipedia" in notes
    status, _, notes = await maniple("search", "--provider", "brave", "x", folder=tmp_path, env=env)
    assert (status, "set BRAVE_API_KEY" in notes) == (2, True)
    status, _, notes = await maniple("search", "", folder=tmp_path, env=env)
    assert (status, "empty" in notes) == (1, True)


async def test_a_folder_of_documents_is_searched_without_any_network(site: Site, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents/arch.md").write_text("# The arch\n\nIt stands by pressure alone.")
    env = env_of(tmp_path, site, MANIPLE_SEARCH__FOLDER=str(tmp_path / "documents"))
    arguments = ("search", "--provider", "folder", "arch", "pressure")
    status, output, _ = await maniple(*arguments, folder=tmp_path, env=env)
    assert (status, output.splitlines()[1]) == (0, "folder:arch.md")
    assert site.requests == []

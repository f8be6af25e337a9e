"""examples/browser_program.py in a real Chromium, on a site of the test's own."""

import asyncio
from pathlib import Path

import pytest

from tests.crawler.web import Reply, open_site
from tests.examples.programs import run_example
from tests.serving import environment

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]
FORM = "<title>Start</title><a href=/x>X</a><form action=/found><input type={} name=q></form>"
FOUND = Reply("<title>Found</title><p>120 men in three lines.")


async def search(pages: dict[str, Reply], folder: Path, status: int = 0) -> tuple[str, list[str]]:
    env = environment("", folder, MANIPLE_BROWSER__ALLOW_PRIVATE='["127.0.0.0/8"]')
    async with open_site(pages) as site:
        options = {"folder": folder, "env": env, "status": status}
        output = await asyncio.to_thread(
            run_example, "browser_program.py", site.url, "Roman maniple", **options
        )
        return output, [path for _, path, _ in site.requests]


@pytest.mark.parametrize("kind", ["search", pytest.param("text", marks=pytest.mark.slow)])
async def test_the_words_are_searched_by_the_sites_own_field(kind: str, tmp_path: Path):
    output, asked = await search({"/": Reply(FORM.format(kind)), "/found": FOUND}, tmp_path)
    assert "/found?q=Roman+maniple" in asked
    assert output.startswith("Found\n") and "120 men" in output
    assert (tmp_path / "found.jpeg").read_bytes().startswith(b"\xff\xd8")


async def test_a_site_without_a_field_is_an_exit_status(tmp_path: Path):
    output, _ = await search({"/": Reply("<a href=/x>Only a link</a>")}, tmp_path, status=1)
    assert "Only a link" in output

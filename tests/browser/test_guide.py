"""The guide's browser examples run unchanged except for the address."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.crawler.web import Reply, Site
from tests.serving import ROOT, environment

pytestmark = pytest.mark.anyio


@pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])
async def test_the_browsers_snippet_runs(site: Site, tmp_path: Path) -> None:
    site.pages["/"] = Reply("<title>Example</title><a href=/more>More</a>")
    site.pages["/more"] = Reply("<p>more")
    guide = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")
    [code] = [
        code for code in re.findall(r"^```python\n(.*?)^```", guide, re.S | re.M) if "open_browser" in code
    ]
    env = environment("http://127.0.0.1:9", tmp_path) | {"MANIPLE_BROWSER__ALLOW_PRIVATE": '["127.0.0.2/32"]'}
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code.replace("https://example.com", site.url)),
        cwd=tmp_path,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(100):
        said, complaints = await program.communicate()
    assert complaints == b""
    [first, second] = said.decode().splitlines()
    assert first.startswith("Example [0]<link>More</link>")
    assert second == "Clicked element at index 0"

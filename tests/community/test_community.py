"""A retriever and a loader of langchain-community, installed beside maniple in an environment of its own."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.crawler.web import Reply, open_site

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
MANIPLE = ROOT / ".venv" / "community" / "bin" / "maniple"
FOUND = {
    "response": [
        {"page_content": "Of stone.", "metadata": {"source": "https://a.test/", "title": "Arches"}},
        {"page_content": "Of no page.", "metadata": {"source": "notes.txt"}},
    ]
}
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nAn arch carries itself.\n"
CONFIG = """
search:
  retrievers: {{remote: "langchain_community.retrievers.remote_retriever:RemoteLangChainRetriever"}}
  options: {{remote: {{url: "{url}/search"}}}}
  providers: [remote]
readers: {{.srt: "langchain_community.document_loaders:SRTLoader"}}
fetch: {{allow_private: [127.0.0.0/8], robots: false}}
browser: {{enabled: false}}
"""
Run = Callable[..., Awaitable[str]]


@pytest.fixture
async def run(anyio_backend: str, tmp_path: Path) -> Run:
    """Run `maniple` in that environment with `conf.yaml` of the test's folder; return what it prints."""
    script = ["bash", str(ROOT / "tests/community/environment.sh")]
    assert await (await asyncio.create_subprocess_exec(*script)).wait() == 0

    async def run(*arguments: str) -> str:
        process = await asyncio.create_subprocess_exec(
            str(MANIPLE),
            *arguments,
            *("--config", str(tmp_path / "conf.yaml")),
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert output, errors.decode()
        return output.decode()

    return run


async def test_its_retriever_searches_and_its_loader_reads(run: Run, tmp_path: Path) -> None:
    async with open_site({}) as site:
        site.pages["/search"] = Reply(json.dumps(FOUND), "application/json")
        site.pages["/talk.srt"] = Reply(SUBTITLES, "application/x-subrip")
        (tmp_path / "conf.yaml").write_text(CONFIG.format(url=site.url))
        hits = json.loads(await run("search", "--json", "arches"))
        assert hits == [
            {"title": "Arches", "url": "https://a.test/", "content": "Of stone.", "source": "remote"}
        ]
        assert "An arch carries itself." in await run("crawl", f"{site.url}/talk.srt")
        checks = json.loads(await run("doctor", "--json"))["checks"]
    found = {check["name"]: (check["status"], check["detail"]) for check in checks}
    assert found["web search"] == ("ok", "remote")
    assert found["your own"][0] == "ok"

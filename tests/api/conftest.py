from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.runs.killing import Site, crawling, open_site
from tests.serving import ServerProcess, environment, server_process


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="module")
def server(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home: Path = tmp_path_factory.mktemp("home")
    env = environment(model.base_url, home, MANIPLE_SERVER__CORS_ORIGINS="http://localhost:3000")
    text = "models: {basic: {max_retries: 0, timeout_seconds: 60}}\n"
    (home / "conf.yaml").write_text(text, encoding="utf-8")
    with server_process(env, home) as process:
        yield process


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        yield client


@pytest.fixture
async def it(model: OpenAIServer, tmp_path: Path) -> AsyncIterator[InProcessService]:
    model.reset(SIMPLE)
    async with open_service(model.base_url, tmp_path) as opened:
        yield opened


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site() as opened:
        yield opened


@pytest.fixture
def asking_model(site: Site) -> Iterator[OpenAIServer]:
    with serving(crawling(site)) as server:
        yield server


@pytest.fixture
async def asking(asking_model: OpenAIServer, tmp_path: Path) -> AsyncIterator[InProcessService]:
    """Open a service whose researcher reads one page of `site`, which needs the user's approval."""
    sections = {"runs": {"approval": ["crawl_tool"]}, "fetch": {"allow_private": ["127.0.0.0/8"]}}
    async with open_service(asking_model.base_url, tmp_path, **sections) as it:
        yield it

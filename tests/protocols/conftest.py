"""A server process whose users come with other protocols' own clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.serving import ServerProcess, environment, server_process

SETTINGS = "models: {basic: {max_retries: 0}}\nruns: {approval: [bash_tool], outage_seconds: 0}\n"


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(model: OpenAIServer, home: Path) -> Iterator[ServerProcess]:
    with server_process(environment(model.base_url, home), home) as process:
        yield process


@pytest.fixture(autouse=True)
def _fresh_script(model: OpenAIServer) -> None:
    model.reset(SIMPLE)

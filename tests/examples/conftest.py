"""A server over a scripted model, for the examples that are clients."""

from collections.abc import Iterator

import pytest

from tests.examples.programs import LIGHT
from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.serving import ServerProcess, environment, server_process


@pytest.fixture(scope="package")
def shared_model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="package")
def server(shared_model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    (home / "conf.yaml").write_text("models: {basic: {max_retries: 0}}\n", encoding="utf-8")
    with server_process(environment(shared_model.base_url, home, **LIGHT), home) as process:
        yield process


@pytest.fixture
def model(shared_model: OpenAIServer) -> OpenAIServer:
    """The model of the server, with the script `SIMPLE` from its beginning."""
    shared_model.reset(SIMPLE)
    return shared_model

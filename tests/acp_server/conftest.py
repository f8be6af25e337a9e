from collections.abc import Iterator

import pytest

from tests.openai_server import SIMPLE, OpenAIServer, serving


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server

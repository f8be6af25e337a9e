import os
from collections.abc import Iterator

import pytest

from tests.environment import configures


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep out what the developer configured: variables, and the `.env` and `conf.yaml` of the clone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if configures(name)]:
            patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        yield

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.environment import CERTIFICATES, configures

# The same examples each time: what is found by chance is found while one writes, not while another lands.
# `pytest --hypothesis-profile=default` looks for new ones.
# Without a deadline: how long an example takes, says the machine's load.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Build the page if it is missing or out of date: once, before the workers start."""
    options = session.config.option
    if not hasattr(session.config, "workerinput") and not options.collectonly:
        subprocess.run([sys.executable, Path(__file__).parents[1] / "web/page_build.py"], check=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left alone with it at the end."""
    items.sort(key=_timeout, reverse=True)


def _timeout(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark else 0.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep out what the developer configured: variables, and the `.env` and `conf.yaml` of the clone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if configures(name)]:
            patch.delenv(name)
        # Its connections are made outside of Python, where pytest-socket sees nothing of them.
        patch.setenv("DDGS_PROXY", "http://127.0.0.1:9")
        patch.delenv("SSL_CERT_DIR", raising=False)
        for name, value in CERTIFICATES.items():
            patch.setenv(name, value)
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        yield

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.bucket import bucket, bucket_service
from tests.environment import CERTIFICATES, configures
from tests.llms.embedded.fetched import fetched_model
from tests.postgres import cluster, open_postgres_again, postgres_url, template
from tests.probes import probing_each_kind_once
from tests.sizes import leave_cases_to_slow

__all__ = [
    "bucket",
    "bucket_service",
    "cluster",
    "fetched_model",
    "open_postgres_again",
    "postgres_url",
    "template",
]

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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, and take what was collected out of all later ones.

    The tests and the imported modules are a million objects that stay to the end: to look through them again
    and again took a quarter of the time of collecting, and a tenth of that of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # As seldom as a server does (`maniple.api.app`): a twentieth of the time of the tests.
        gc.set_threshold(5_000, 10, 200)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left alone with it at the end."""
    leave_cases_to_slow(items)
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


@pytest.fixture(scope="session", autouse=True)
def passed_probes() -> Iterator[set[str]]:
    """Probe each kind of sandbox once: of many tests with the same settings the first proves that it holds.

    Yields the kinds that passed. The tests of the probes begin with none.
    """
    passed: set[str] = set()
    with probing_each_kind_once(passed):
        yield passed

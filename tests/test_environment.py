import os
import subprocess
import sys
from pathlib import Path

import pytest

from maniple.config import Settings, load_settings

ROOT = Path(__file__).parents[1]
DEVELOPER = {
    "BASIC_BASE_URL": "https://developer.test/v1",
    "BASIC_API_KEY": "sk-developer",
    "OPENAI_API_KEY": "sk-developer",
    "OPENAI_BASE_URL": "https://developer.test/v1",
    "MANIPLE_SERVER__PORT": "9000",
    "MANIPLE_NO_SUCH": "x",
    "NO_COLOR": "1",
}


def test_no_test_sees_what_the_developer_configured() -> None:
    assert set(DEVELOPER) & set(os.environ) == set()
    assert not Path(".env").exists()
    # The folders follow HOME, which stays the developer's: the embedded model is fetched once.
    folders = {"data_dir", "cache_dir"}
    assert load_settings().model_dump(exclude=folders) == Settings().model_dump(exclude=folders)


@pytest.mark.slow
def test_that_holds_for_a_developer_who_configured_much() -> None:
    test = f"{__file__}::{test_no_test_sees_what_the_developer_configured.__name__}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test]
    env = {**os.environ, **DEVELOPER}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout

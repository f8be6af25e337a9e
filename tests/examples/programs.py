"""The programs of `examples/`, run as their first lines say."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.serving import ROOT

EXAMPLES = ROOT / "examples"
LIGHT = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}
SECONDS = 120


def run_example(name: str, *arguments: str, folder: Path, env: Mapping[str, str], answers: str = "") -> str:
    """Run `examples/NAME` in `folder`, with `answers` on its standard input, and return what it printed."""
    return run_command([sys.executable, str(EXAMPLES / name), *arguments], folder, env, answers)


def run_command(command: list[str], folder: Path, env: Mapping[str, str], answers: str = "") -> str:
    """Run a command that must succeed and return what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=env, input=answers, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

"""The guide to the HTTP service: its commands run as they stand, and it has every route."""

import re
import subprocess
from pathlib import Path

from maniple.api import create_app
from maniple.api.error_responses import STATUS_BY_CODE
from maniple.config import Settings
from tests.openai_server import SIMPLE, serving
from tests.serving import ROOT, environment, server_process

GUIDE = (ROOT / "docs/http.md").read_text(encoding="utf-8")
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```", GUIDE, re.S | re.M))
QUICK = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}


def test_the_commands_of_the_guide_run_unchanged(tmp_path: Path):
    with serving(SIMPLE) as model:
        with server_process(environment(model.base_url, tmp_path, **QUICK), tmp_path) as server:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", COMMANDS],
                env={"PATH": environment("", "")["PATH"], "SERVER": server.url},
                capture_output=True,
                text=True,
                timeout=60,
            )
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert said.count("event: final_session_state") == 6
    assert '"status":"completed"' in said
    assert "# What is 1 + 3?" in said
    assert "<!DOCTYPE html>" in said
    assert "'title': '1 + 3'" in said
    assert "no such artifact" in said
    assert "maniple_runs_started_total" in said


def test_the_guide_has_every_route():
    shown = re.sub(r"\$\w+|none\.gif|0{8}-[0-9-]+", "*", COMMANDS)
    for path in create_app(Settings()).openapi()["paths"]:
        address = "*" + re.sub(r"\{\w+\}", "*", path)
        assert address in shown, path


def test_the_guide_has_every_code_of_a_refusal():
    for code, status in STATUS_BY_CODE.items():
        row = next((line for line in GUIDE.splitlines() if f"`{code}`" in line), "")
        assert row.startswith(f"| {status} |"), code

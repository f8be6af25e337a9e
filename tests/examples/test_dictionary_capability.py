"""examples/dictionary-capability: the commands of its README, which install into the test's folder."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.examples.programs import EXAMPLES, LIGHT, run_command
from tests.openai_server import SIMPLE, call, reply, serving
from tests.serving import environment

PACKAGE = EXAMPLES / "dictionary-capability"
STEPS = [
    {"agent_name": name, "title": name, "description": f"The {name} works."}
    for name in ("researcher", "reporter")
]
SCRIPT = {
    **SIMPLE,
    "planner": [reply(json.dumps({"thought": "Look.", "title": "Lintels", "steps": STEPS}))],
    "researcher": [call("look_up", word="lintel"), reply("It is a beam.")],
    "reporter": [reply("A beam.")],
}


@pytest.mark.slow
def test_the_commands_of_its_readme_install_and_use_it(tmp_path: Path):
    [commands] = re.findall(
        r"^```bash\n(.*?)^```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.S | re.M
    )
    installed, programs = tmp_path / "installed", Path(sys.executable).parent
    # Without the network, and without a trace in the environment of the tests.
    options = f"--quiet --no-build-isolation --no-deps --no-index --target {installed}"
    commands = commands.replace(".venv/bin", str(programs))
    commands = commands.replace("install ./examples/dictionary-capability", f"install {options} {PACKAGE}")
    with serving(SCRIPT) as model:
        env = environment(model.base_url, tmp_path, **LIGHT, PYTHONPATH=str(installed))
        output = run_command(["bash", "-euo", "pipefail", "-c", commands], tmp_path, env)
        results = [m["content"] for body in model.requests for m in body["messages"] if m["role"] == "tool"]
    assert any("above a door" in result for result in results), output
    assert "A beam." in output

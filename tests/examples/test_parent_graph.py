"""examples/parent_graph.py with answers on its standard input."""

import json
from pathlib import Path

import pytest

from tests.examples.programs import LIGHT, run_example
from tests.openai_server import SIMPLE, call, reply, serving
from tests.serving import environment

STEPS = [
    {"agent_name": "file_manager", "title": "Write", "description": "Write the sum to sum.md."},
    {"agent_name": "reporter", "title": "Report", "description": "Report the result."},
]
SCRIPT = {
    **SIMPLE,
    "planner": [reply(json.dumps({"thought": "A file.", "title": "The sum", "steps": STEPS}))],
    "file_manager": [call("write_file", path="sum.md", content="4"), reply("It is in sum.md.")],
}


def run(tmp_path: Path, answers: str) -> str:
    with serving(SCRIPT) as model:
        env = environment(model.base_url, tmp_path, **LIGHT)
        return run_example("parent_graph.py", "1+3=?", folder=tmp_path, env=env, answers=answers)


def test_the_plan_and_the_call_are_approved_and_the_next_node_stores_the_report(tmp_path: Path):
    output = run(tmp_path, "accept\nyes\n")
    assert output.count("Answer: ") == 2
    assert '"kind": "plan_review"' in output and '"tool_name": "write_file"' in output
    assert output.splitlines()[-1] == "Status: completed"
    assert "**4**" in (tmp_path / "report.md").read_text()
    assert [path.read_text() for path in tmp_path.rglob("sum.md")] == ["4"]


@pytest.mark.slow
def test_a_call_that_is_rejected_writes_nothing(tmp_path: Path):
    output = run(tmp_path, "accept\nno, do not write files\n")
    assert "Report: report.md" in output
    assert [*tmp_path.rglob("sum.md")] == []

import io
import json

import pytest

from maniple.cli.render.plain import JsonDisplay
from maniple.cli.text import json_line
from tests.cli.events import show_events, tool, workflow


@pytest.mark.anyio
async def test_every_event_is_a_line_of_json_and_nothing_else_is_printed() -> None:
    output, notes = io.StringIO(), io.StringIO()
    async with JsonDisplay(output, notes) as view:
        run = show_events(view, workflow())
    view.finish(run, 0.1)

    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [line["id"] for line in lines] == list(range(1, len(workflow()) + 1))
    assert [(line["event"], line["data"]) for line in lines] == [(e.type, e.data()) for e in workflow()]
    assert list(lines[0]) == ["id", "event", "data"]
    assert notes.getvalue() == ""


def test_a_line_of_json_is_escaped_without_a_change_of_its_values() -> None:
    result = tool("bash_tool", "\x1b[2J\x9b2J\u202e\ud83d\u2028é中", cmd="ls")[1]
    line = json_line(result.data())

    assert "é中" in line
    assert line.isprintable()
    assert json.loads(line) == result.data()

"""Calls that a member writes as text are made, over a real HTTP endpoint that follows a script."""

import json

import pytest

from tests.agents.call_outputs import ENVELOPES, UNMARKED
from tests.openai_server import SIMPLE, reply
from tests.team import data, joined_text, scripted_team, status

pytestmark = pytest.mark.anyio
WORDS = "I add the numbers first."


def as_python(text):
    """Return a call of `bash_tool` as one of `python_repl_tool`."""
    return text.replace("bash_tool", "python_repl_tool").replace("cmd", "code").replace("ls", "print(1+3)")


@pytest.mark.parametrize(
    "text",
    [
        ENVELOPES["Hermes and Qwen"],
        ENVELOPES["Qwen3-Coder"],
        ENVELOPES["harmony"],
        ENVELOPES["GLM"],
        UNMARKED["a fence"],
        UNMARKED["JSON"],
    ],
)
@pytest.mark.parametrize("rejects", [[], ["tools"]])
async def test_a_call_below_a_sentence_is_made_and_the_sentence_stays(text, rejects):
    coder = [reply(f"{WORDS}\n\n{as_python(text)}"), reply("It is 4.")]
    async with scripted_team({**SIMPLE, "coder": coder, "reject": rejects}) as it:
        frames = await it.run()
        *_, last = [one for one in it.server.requests if "You are the coder" in str(one["messages"])]
    assert data(frames, "tool_call")[0]["tool_input"] == {"code": "print(1+3)"}
    assert data(frames, "tool_call_result")[0]["tool_result"] == "4"
    assert WORDS in json.dumps(last["messages"])
    assert WORDS in joined_text(frames)
    assert "python_repl_tool" not in joined_text(frames)
    assert status(frames) == "completed"


@pytest.mark.parametrize(
    "name", ["python_repl_tool", "functions.python_repl_tool", "python_repl_tool<|call|>"]
)
@pytest.mark.parametrize("times", [1, 2])
async def test_arguments_that_were_encoded_more_than_once_are_read(name, times):
    arguments = json.dumps({"code": "print(1+3)"})
    for _ in range(times):
        arguments = json.dumps(arguments)
    coder = [{"tool_calls": [{"name": name, "arguments": arguments}]}, reply("It is 4.")]
    async with scripted_team({**SIMPLE, "coder": coder}) as it:
        frames = await it.run()
    assert data(frames, "tool_call")[0]["tool_input"] == {"code": "print(1+3)"}
    assert status(frames) == "completed"

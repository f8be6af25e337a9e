"""Of a long result the conversation holds head and tail; the whole is a file; secrets are in neither."""

import json
import re
from typing import Any

import pytest
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from maniple.agents.middleware.tool_results import RESULT_MAX_CHARACTERS, ResultLengthLimit
from maniple.agents.offers import Offer
from maniple.agents.profiles import static_tools
from maniple.errors import WorkspaceFull
from maniple.redaction import Redactor
from maniple.tools.items import StoredResults
from maniple.workspace import Workspaces
from tests.agents.restartable_team import script
from tests.openai_server import call, reply
from tests.team import data, scripted_team
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio
CALL: Any = {"name": "dump", "args": {}, "id": "1"}
NONE: Any = None
REQUEST = ToolCallRequest(tool_call=CALL, tool=None, state={}, runtime=NONE)


def model(window: int = 100_000) -> FakeListChatModel:
    return FakeListChatModel(responses=[], profile={"max_input_tokens": window})


async def capped(content, cap: ResultLengthLimit):
    async def handler(_) -> ToolMessage:
        return ToolMessage(content, tool_call_id="1", name="dump")

    return (await cap.awrap_tool_call(REQUEST, handler)).content


async def test_what_fits_stays_as_it_is():
    text = "x" * RESULT_MAX_CHARACTERS
    assert await capped(text, ResultLengthLimit(model())) is text


async def test_head_and_tail_of_what_is_longer_are_shown_with_the_number_left_out():
    short = await capped("head " + "x" * 100_000 + " tail", ResultLengthLimit(model()))
    assert short.startswith("head xxx")
    assert short.endswith("xxx tail")
    assert "[… 76,010 of 100,010 characters left out; they are not kept …]" in short
    assert len(short) < RESULT_MAX_CHARACTERS + 200


@pytest.mark.parametrize(("letter", "characters"), [("x", 4_000), ("字", 1_333)])
async def test_no_result_takes_more_than_a_quarter_of_a_small_window(letter, characters):
    short = await capped(letter * 30_000, ResultLengthLimit(model(window=4_000)))
    assert short.count(letter) == pytest.approx(characters, abs=2)


async def test_of_a_result_in_parts_the_texts_are_cut_and_pictures_stay():
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    parts = await capped([{"type": "text", "text": "x" * 50_000}, picture], ResultLengthLimit(model()))
    assert [part["type"] for part in parts] == ["text", "image"]
    assert len(parts[0]["text"]) < RESULT_MAX_CHARACTERS + 200


async def test_without_room_for_a_file_the_cut_is_stated(tmp_path):
    class Full(StoredResults):
        async def save(self, tool_name: str, text: str) -> str:
            raise WorkspaceFull("the workspace is full")

    short = await capped("x" * 50_000, ResultLengthLimit(model(), Full(Workspaces(tmp_path))))
    assert "the workspace is full" in short


async def test_the_whole_is_a_file_of_the_workspace_without_the_secrets_of_the_settings(tmp_path):
    workspaces = Workspaces(tmp_path)

    @tool
    async def dump(what: str) -> str:
        """Dump."""
        return f"key: hunter2-hunter2 {what} " * 2_000

    toolbox = Offer(
        {"coder": [dump]},
        services={StoredResults: StoredResults(workspaces), Redactor: Redactor(["hunter2-hunter2"])},
    )
    async with scripted_team(script(call("dump", what="all"), reply("Done.")), toolbox=toolbox) as it:
        await it.run("Dump it.", thread_id="t")
        told = it.prompts("coder")[-1]
    assert "hunter2" not in told
    assert "key: *** all" in told
    path = re.search(r"the whole is the file (tool-results/dump-[0-9a-f]{8}\.txt)", told)
    assert path
    kept = workspaces.open("t").read(path[1], 100_000).content
    assert kept.decode() == "key: *** all " * 2_000


async def test_a_name_that_no_file_can_have_is_made_fit(tmp_path):
    keep = StoredResults(Workspaces(tmp_path)).save
    path = await keep("../über/" + "x" * 300, "text")
    assert re.fullmatch(r"tool-results/[\w-]{1,60}-[0-9a-f]{8}\.txt", path)
    assert await keep("../über/" + "x" * 300, "text") == path


async def test_an_agent_that_reads_no_files_reads_what_was_left_out_and_nothing_else(tmp_path):
    lines = "".join(f"line {number}: {'x' * 90}\n" for number in range(1_000))
    path = await StoredResults(Workspaces(tmp_path / "elsewhere")).save("dump", lines)
    workspaces = Workspaces(tmp_path / "here")

    @tool
    async def dump(what: str) -> str:
        """Dump."""
        return lines

    asked = [
        call("read_item", path=path, start_line=501, end_line=501),
        call("read_item", path="../t/secret.txt"),
        call("read_item", path="secret.txt"),
    ]
    toolbox = Offer({"coder": [dump]}, services={StoredResults: StoredResults(workspaces)})
    told = script(call("dump", what="all"), *asked, reply("Done."))
    async with scripted_team(told, toolbox=toolbox) as it:
        frames = await it.run("Dump it.", thread_id="t")
        coders = [one for one in it.server.requests if "You are the coder" in str(one["messages"][0])]
    offered = [{one["function"]["name"] for one in request["tools"]} for request in coders]
    assert ["read_item" in names for names in offered] == [False, True, True, True, True]
    _, line, outside, other = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert line == f"line 500: {'x' * 90}"
    assert "without `..`" in outside
    assert "'secret.txt' cannot be read" in other


async def test_an_endpoint_without_tools_sees_no_note_unless_something_was_cut(tmp_path):
    @tool
    async def dump(what: str) -> str:
        """Dump."""
        return what * 30_000

    toolbox = Offer({"coder": [dump]}, services={StoredResults: StoredResults(Workspaces(tmp_path))})
    called = [reply(json.dumps({"name": "dump", "arguments": {"what": what}})) for what in ("", "x")]
    models = {"capabilities": {"tools": False, "json_schema": False}}
    async with scripted_team(script(*called, reply("Done.")), toolbox=toolbox, models=models) as it:
        await it.run("Dump it.", thread_id="t")
        told = [str(one["messages"]) for one in it.server.requests if "You are the coder" in str(one)]
    assert ["read_item" in one for one in told] == [False, False, True]


def test_stored_results_are_labelled_when_read_as_files(tmp_path):
    workspaces = Workspaces(tmp_path)
    has = {
        "coder": build_file_tools(workspaces),
        "researcher": [],
        "browser": build_file_tools(workspaces)[:1],
    }
    toolbox = Offer(has, services={StoredResults: StoredResults(workspaces)})
    names = {worker: [tool.name for tool in static_tools(worker, toolbox)] for worker in has}
    assert names == {
        "coder": ["write_file", "read_file", "list_files"],
        "researcher": [],
        "browser": ["write_file", "read_item"],
    }

"""`maniple acp` as editors use it: the protocol's own client, over pipes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from acp import (
    RequestError,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
)

from tests.acp_server.editors import SECONDS, Editor, editing
from tests.cli.processes import MANIPLE, environment, start
from tests.openai_server import SIMPLE, Json, OpenAIServer, call, reply
from tests.serving import ROOT, server_process

pytestmark = pytest.mark.anyio
TASK = "1+3=?"
SETTINGS = "models: {basic: {max_retries: 0}}\nruns: {approval: [bash_tool], outage_seconds: 0}\n"
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
HANGING = {**SIMPLE, "coder": [{"hang": True}]}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    return tmp_path


async def ask_and_kill(editor: Editor, home: Path, is_time: Callable[[], object]) -> str:
    """Ask the task, and kill the program once it is time; return the session."""
    session = await editor.begin(home)
    asking = asyncio.create_task(editor.ask(session, TASK))
    await editor.until(is_time)
    editor.process.kill()
    with pytest.raises((ConnectionError, RequestError)):
        await asking
    return session


async def test_small_talk_is_one_message(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [reply("Hello!")]})
    async with editing(model, home) as editor:
        assert await editor.ask(await editor.begin(home), "Hi") == "end_turn"
        assert editor.text() == "Hello!"
        assert not editor.calls()
    assert editor.process.returncode == 0


async def test_a_task_is_a_plan_tool_calls_with_results_and_an_answer(model: OpenAIServer, home: Path):
    async with editing(model, home) as editor:
        assert await editor.ask(await editor.begin(home), TASK) == "end_turn"
        assert editor.text().count("The answer is **4**.") == 1
        assert editor.plan() == ["completed", "completed"]
        assert {*editor.calls().values()} == {"completed"}
        [begun] = [one for one in editor.updates if one.session_update == "tool_call"]
        assert (begun.kind, begun.raw_input) == ("execute", {"code": "print(1+3)"})


@pytest.mark.slow
async def test_a_second_prompt_continues_the_conversation(model: OpenAIServer, home: Path):
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        await editor.ask(session, TASK)
        await editor.ask(session, "And why?")
    assert "The answer is **4**." in json.dumps(model.requests[-1])


@pytest.mark.parametrize(("chosen", "is_run"), [("allow", True), ("reject", False)])
async def test_an_approval_is_a_permission_request(
    model: OpenAIServer, home: Path, chosen: str, is_run: bool
):
    model.reset(APPROVAL)
    async with editing(model, home, chosen) as editor:
        assert await editor.ask(await editor.begin(home), TASK) == "end_turn"
        [(shown, options)] = editor.asked
        assert {one.option_id for one in options} == {"allow", "always", "reject", "written"}
        assert shown.raw_input == {"cmd": "echo 5"}
        assert "The answer is **4**." in editor.text()
        assert "in_progress" not in editor.calls().values()
    results = [one for one in messages_of_tools(model) if "5" in one]
    assert bool(results) == is_run


@pytest.mark.slow
async def test_an_approval_can_be_edited_with_the_next_prompt(model: OpenAIServer, home: Path):
    model.reset(APPROVAL)
    async with editing(model, home, "written") as editor:
        session = await editor.begin(home)
        assert await editor.ask(session, TASK) == "end_turn"
        assert "bash_tool" in editor.text()
        edit = {"type": "edit", "args": {"cmd": "echo edited"}}
        assert await editor.ask(session, json.dumps(edit)) == "end_turn"
        assert editor.text().count("The answer is **4**.") == 1
    assert any("edited" in one for one in messages_of_tools(model))


async def test_a_question_ends_the_turn_and_the_next_prompt_answers_it(model: OpenAIServer, home: Path):
    model.reset(ASKS)
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        assert await editor.ask(session, TASK) == "end_turn"
        assert "Which numbers?" in editor.text()
        assert not editor.asked
        assert await editor.ask(session, "1 and 3") == "end_turn"
        assert editor.text().count("The answer is **4**.") == 1
    assert "1 and 3" in json.dumps(model.requests)


@pytest.mark.slow
async def test_a_plan_is_reviewed_before_it_is_executed(model: OpenAIServer, home: Path):
    async with editing(model, home, "written", "accept") as editor:
        session = await editor.begin(home)
        await editor.agent.set_session_mode(session_id=session, mode_id="review")
        assert await editor.ask(session, TASK) == "end_turn"
        assert "The answer" not in editor.text()
        assert await editor.ask(session, "Use Python") == "end_turn"
        assert len(editor.asked) == 2
        assert "Compute" in editor.asked[1][0].content[0].content.text
        assert editor.text().count("The answer is **4**.") == 1
    assert model.stats["by_role"]["planner"] == 2


async def test_the_effort_of_a_session_is_that_of_its_prompts(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [reply("Hello!")]})
    async with editing(model, home) as editor:
        begun = await editor.agent.new_session(cwd=str(home), mcp_servers=[])
        [option] = begun.config_options or []
        assert (option.id, option.category, option.current_value) == ("effort", "thought_level", "default")
        assert await editor.ask(begun.session_id, "Hi") == "end_turn"
        chosen = {"session_id": begun.session_id, "config_id": "effort"}
        changed = await editor.agent.set_config_option(**chosen, value="low")
        assert changed.config_options[0].current_value == "low"
        assert await editor.ask(begun.session_id, "Hi") == "end_turn"
        for wrong in ({**chosen, "value": "huge"}, {**chosen, "config_id": "colour", "value": "low"}):
            with pytest.raises(RequestError) as refused:
                await editor.agent.set_config_option(**wrong)
            assert refused.value.code == -32602
    assert [one.get("reasoning_effort") for one in model.requests] == [None, "low"]


async def test_a_cancelled_prompt_ends_its_run(model: OpenAIServer, home: Path):
    model.reset(HANGING)
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        asking = asyncio.create_task(editor.ask(session, TASK))
        await editor.until(lambda: "in_progress" in editor.plan())
        await editor.agent.cancel(session_id=session)
        assert await asking == "cancelled"
        model.reset({"coordinator": [reply("Hello again!")]})
        assert await editor.ask(session, "Hi") == "end_turn"
        assert "Hello again!" in editor.text()


@pytest.mark.slow
async def test_a_prompt_that_waits_for_a_permission_can_be_cancelled(model: OpenAIServer, home: Path):
    model.reset(APPROVAL)
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        asking = asyncio.create_task(editor.ask(session, TASK))
        await editor.until(lambda: editor.asked)
        await editor.agent.cancel(session_id=session)
        editor.dismiss()
        assert await asking == "cancelled"
        assert "in_progress" not in editor.calls().values()


def read_waiting_run(url: str) -> Json:
    """Return the newest run, which waits, and its pause."""
    [thread] = httpx.get(f"{url}/api/threads").json()["threads"]
    [run] = httpx.get(f"{url}/api/threads/{thread['thread_id']}").json()["runs"]
    events = httpx.get(f"{url}/api/runs/{run['run_id']}/events").text
    [pause] = [json.loads(one[6:]) for one in events.split("\n") if '"interrupt_id"' in one]
    return {"run_id": run["run_id"], "interrupt_id": pause["interrupt_id"]}


@pytest.mark.slow
@pytest.mark.parametrize("decided", ["approval", "plan", "cancel"])
async def test_what_is_decided_elsewhere_is_taken_back_from_the_editor(
    model: OpenAIServer, home: Path, decided: str
):
    model.reset(SIMPLE if decided == "plan" else APPROVAL)
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        if decided == "plan":
            await editor.agent.set_session_mode(session_id=session, mode_id="review")
        asking = asyncio.create_task(editor.ask(session, TASK))
        await editor.until(lambda: editor.asked)
        with server_process(environment(home, model.base_url), home) as server:
            waiting = await asyncio.to_thread(read_waiting_run, server.url)
            path = f"{server.url}/api/runs/{waiting['run_id']}"
            if decided == "cancel":
                sent = await asyncio.to_thread(httpx.post, f"{path}/cancel", timeout=SECONDS)
            else:
                answer = {"answer": "accept" if decided == "plan" else {"type": "approve"}}
                body = {**answer, "interrupt_id": waiting["interrupt_id"]}
                sent = await asyncio.to_thread(httpx.post, f"{path}/resume", json=body, timeout=SECONDS)
            assert sent.is_success, sent.text
            assert await asking == ("cancelled" if decided == "cancel" else "end_turn")
        await editor.until(lambda: editor.taken_back)
        assert len(editor.asked) == len(editor.taken_back) == 1
        assert editor.text().count("The answer is **4**.") == (decided != "cancel")
        assert not {"pending", "in_progress"} & {*editor.calls().values()}
        editor.dismiss()  # the late answer of an editor that does not take requests back changes nothing
        model.reset({"coordinator": [reply("Hello again!")]})
        assert await editor.ask(session, "Hi") == "end_turn"
        assert editor.text().endswith("again!")


@pytest.mark.slow
async def test_a_session_is_loaded_after_a_restart(model: OpenAIServer, home: Path):
    model.reset(ASKS)
    async with editing(model, home) as editor:
        session = await editor.begin(home)
        await editor.ask(session, TASK)
        await editor.ask(session, "1 and 3")
        before = editor
    async with editing(model, home) as editor:
        await editor.agent.load_session(session_id=session, cwd=str(home), mcp_servers=[])
        assert editor.text("user_message_chunk") == f"{TASK}1 and 3"
        assert editor.text() == before.text()
        assert editor.calls() == before.calls()
        assert editor.plan() == before.plan()
        with pytest.raises(RequestError):
            await editor.agent.load_session(session_id="nobody", cwd=str(home), mcp_servers=[])


@pytest.mark.slow
async def test_a_question_is_answered_after_a_restart(model: OpenAIServer, home: Path):
    model.reset(APPROVAL)
    async with editing(model, home) as editor:
        session = await ask_and_kill(editor, home, lambda: editor.asked)
    async with editing(model, home, "allow") as editor:
        await editor.agent.load_session(session_id=session, cwd=str(home), mcp_servers=[])
        await editor.until(lambda: "The answer is **4**." in editor.text())
        assert len(editor.asked) == 1


@pytest.mark.slow
async def test_a_run_whose_program_was_killed_goes_on_and_is_shown_whole(model: OpenAIServer, home: Path):
    model.reset(HANGING)
    async with editing(model, home) as editor:
        session = await ask_and_kill(editor, home, lambda: "in_progress" in editor.plan())
    model.reset(SIMPLE)
    async with editing(model, home) as editor:
        await editor.agent.load_session(session_id=session, cwd=str(home), mcp_servers=[])
        await editor.until(lambda: "The answer is **4**." in editor.text())
        await editor.until(lambda: editor.plan() == ["completed", "completed"])
        assert editor.text("user_message_chunk") == TASK
        assert editor.text().count("The answer is **4**.") == 1
    assert "planner" not in model.stats["by_role"]


@pytest.mark.slow
async def test_a_prompt_during_a_loaded_run_is_a_message_to_it(model: OpenAIServer, home: Path):
    model.reset(HANGING)
    async with editing(model, home) as editor:
        session = await ask_and_kill(editor, home, lambda: "in_progress" in editor.plan())
    model.reset({**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]], "lead": [reply("I know.")]})
    async with editing(model, home) as editor:
        await editor.agent.load_session(session_id=session, cwd=str(home), mcp_servers=[])
        asking = asyncio.create_task(editor.ask(session, "How far are you?"))
        await editor.until(lambda: any(one.session_update == "agent_message_chunk" for one in editor.updates))
        model.release()
        assert await asking == "end_turn"
        assert editor.text().count("The answer is **4**.") == 1


async def test_the_folders_of_an_editor_are_named_as_not_used_once(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [reply("Hello!")] * 2})
    async with editing(model, home) as editor:
        made = await editor.agent.new_session(cwd="/src", additional_directories=["/lib"], mcp_servers=[])
        for _ in range(2):
            assert await editor.ask(made.session_id, "Hi") == "end_turn"
        assert editor.text("agent_thought_chunk").count("(/src, /lib)") == 1


@pytest.mark.slow
async def test_files_pictures_and_links_of_a_prompt_reach_the_team(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [reply("Hello!")]})
    async with editing(model, home) as editor:
        editor.files = {"/src/main.py": "print('unsaved')"}
        blocks = [
            "What is this?",
            image_block(PIXEL, "image/png"),
            resource_link_block("main.py", "file:///src/main.py"),
            resource_link_block("gone.py", "file:///src/gone.py"),
            resource_link_block("site", "http://127.0.0.1:9/page"),
            resource_block(embedded_text_resource("file:///src/notes.md", "# Notes")),
            resource_block(embedded_blob_resource("file:///src/data.bin", "AAEC")),
        ]
        session = await editor.begin(home)
        assert await editor.ask(session, *blocks) == "end_turn"
        assert "gone.py was not read" in editor.text("agent_thought_chunk")
    asked = json.dumps(model.requests[0])
    assert "data:image/png;base64" in asked or "picture" in asked
    for text in ("main.py", "notes.md", "data.bin", "http://127.0.0.1:9/page", "not read"):
        assert text in asked
    stored = {one.name: one.read_bytes() for one in (home / "data").rglob("*.*") if one.is_file()}
    assert stored["main.py"] == b"print('unsaved')"
    assert stored["notes.md"] == b"# Notes"
    assert stored["data.bin"] == b"\x00\x01\x02"


@pytest.mark.slow
async def test_an_editor_without_files_is_told_that_a_link_was_not_read(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [reply("Hello!")]})
    async with editing(model, home, reads_files=False) as editor:
        link = resource_link_block("main.py", "file:///src/main.py")
        await editor.ask(await editor.begin(home), "What is this?", link)
        assert "main.py was not read" in editor.text("agent_thought_chunk")


@pytest.mark.slow
async def test_a_file_that_the_team_has_made_is_linked(model: OpenAIServer, home: Path):
    write = call("python_repl_tool", code="open('sum.txt', 'w').write('4')")
    model.reset({**SIMPLE, "coder": [write, reply("It is in sum.txt.")]})
    async with editing(model, home) as editor:
        await editor.ask(await editor.begin(home), TASK)
        links = [
            one.content
            for one in editor.updates
            if one.session_update == "agent_message_chunk" and one.content.type == "resource_link"
        ]
        [link] = [one for one in links if one.name == "sum.txt"]
    written = await asyncio.to_thread(Path(link.uri.removeprefix("file://")).read_text, "utf-8")
    assert written == "4"


@pytest.mark.parametrize("blocks", [[], ["  "]])
async def test_a_prompt_that_asks_nothing_is_refused(model: OpenAIServer, home: Path, blocks: list[Any]):
    async with editing(model, home) as editor:
        with pytest.raises(RequestError) as refused:
            await editor.ask(await editor.begin(home), *blocks)
        assert refused.value.code == -32602
        with pytest.raises(RequestError) as refused:
            await editor.ask("nobody", TASK)
        assert refused.value.code == -32002


@pytest.mark.slow
async def test_a_run_that_fails_is_an_error_of_the_prompt(model: OpenAIServer, home: Path):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    async with editing(model, home) as editor:
        with pytest.raises(RequestError) as failed:
            await editor.ask(await editor.begin(home), TASK)
        assert failed.value.code == -32603
        assert (failed.value.data or {})["code"]


async def test_without_a_model_a_prompt_returns_the_reason(model: OpenAIServer, tmp_path: Path):
    off = {"MANIPLE_EMBEDDED__ENABLED": "false", "MANIPLE_EMBEDDED__DISCOVER": "false"}
    absent = {**off, "BASIC_MODEL": "", "BASIC_API_KEY": "", "BASIC_BASE_URL": ""}
    async with editing(model, tmp_path, variables=absent) as editor:
        with pytest.raises(RequestError) as refused:
            await editor.ask(await editor.begin(tmp_path), TASK)
        assert "No model is configured" in str(refused.value)
    assert editor.process.returncode == 1


async def test_without_an_editor_the_command_ends_and_names_the_remedy(tmp_path: Path):
    env = environment(tmp_path, "http://127.0.0.1:9/v1", PYTHONPATH=str(ROOT))
    process = await start(MANIPLE, "acp", folder=tmp_path, env=env)
    async with asyncio.timeout(SECONDS):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"docs/protocols.md" in errors


def messages_of_tools(model: OpenAIServer) -> list[str]:
    """Return the results of tools that the model was sent."""
    return [
        str(message["content"])
        for request in model.requests
        for message in (request["messages"] if isinstance(request, dict) else request)
        if message.get("role") == "tool"
    ]

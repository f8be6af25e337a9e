"""The team as tools, called by the official client in this process."""

import asyncio
import json
from pathlib import Path

import anyio
import pytest
from jsonschema import validate
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from tests.mcp_server.hosts import ASKING, CRAWLING, ERAS, HANGING, QUESTION, Host, Person, hosted, words
from tests.openai_server import BRIEF, SIMPLE, OpenAIServer, call, reply

pytestmark = pytest.mark.anyio


@pytest.fixture
async def host(model: OpenAIServer, tmp_path: Path):
    model.reset(SIMPLE)
    async with hosted(model.base_url, tmp_path) as found:
        yield found


async def test_a_host_finds_the_tools_with_their_schemas(host: Host):
    found = {tool.name: tool for tool in (await host.client.list_tools()).tools}
    assert {"ask_team", "plan", "get_run", "cancel_run"} <= {*found}
    asked = {*found["ask_team"].input_schema["properties"]}
    assert {"question", "thread_id", "deep_thinking", "search_first", "review_plan", "wait_seconds"} <= asked
    assert all(tool.output_schema and tool.description for tool in found.values())
    assert found["get_run"].annotations.read_only_hint


@pytest.mark.parametrize("mode", ERAS)
async def test_a_question_is_answered_as_data_and_in_words(model, tmp_path, mode):
    model.reset(SIMPLE)
    async with hosted(model.base_url, tmp_path, mode=mode) as host:
        result = await host.call("ask_team", **QUESTION)
        schema = (await host.client.list_tools()).tools[0].output_schema
    validate(run := result.structured_content, schema)
    assert (run["status"], run["waits_for"], run["error"]) == ("completed", [], None)
    assert "The answer is **4**." in run["answer"]
    assert [step["status"] for step in run["plan"]["steps"]] == ["completed", "completed"]
    assert run["usage"]["model_calls"] > 0
    assert result.content[0].text == run["answer"]
    assert f"thread_id: {run['thread_id']}" in words(result)


async def test_a_run_names_the_score_of_its_answer(model, tmp_path):
    report = {
        "coder": [reply("Trees: 1060. Oaks: 215. Beeches: 845.")],
        "reporter": [reply("There are 1,060 trees. Oaks are 215 of them. There are 845 beeches.")],
    }
    model.reset({**SIMPLE, **report})
    async with hosted(model.base_url, tmp_path) as host:
        asked = await host.run(**QUESTION)
        run = await host.run("get_run", run_id=asked["run_id"])
    assert run["score"].startswith("*3 of 3 claims")
    assert run["answer"].endswith(run["score"])


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_reports_which_steps_and_agents_begin(model, tmp_path, mode):
    model.reset(SIMPLE)
    async with hosted(model.base_url, tmp_path, mode=mode) as host:
        await host.run(**QUESTION)
    assert [one for one in host.told if "step" in one or "begins" in one] == [
        "coordinator begins",
        "planner begins",
        "plan: 1 + 3 (2 steps)",
        "step 1 of 2, coder: Compute (in_progress)",
        "coder begins",
        "step 1 of 2, coder: Compute (completed)",
        "step 2 of 2, reporter: Report (in_progress)",
        "reporter begins",
        "step 2 of 2, reporter: Report (completed)",
    ]


async def test_progress_reports_which_tools_are_called(model, tmp_path):
    model.reset(CRAWLING)
    async with hosted(model.base_url, tmp_path) as host:
        await host.run(**QUESTION)
    assert "calls crawl_tool" in host.told


async def test_a_conversation_goes_on_with_its_thread(host: Host):
    first = await host.run(**QUESTION)
    second = await host.run(question="And 1+4?", thread_id=first["thread_id"])
    assert second["thread_id"] == first["thread_id"]
    assert second["run_id"] != first["run_id"]


async def test_a_plan_is_made_and_nothing_of_it_is_done_until_it_is_accepted(host: Host, model):
    planned = await host.run("plan", **QUESTION)
    assert planned["status"] == "interrupted"
    assert [step["title"] for step in planned["plan"]["steps"]] == ["Compute", "Report"]
    assert not any("You are the coder" in str(one) for one in model.requests)

    done = await host.run(question="accept", thread_id=planned["thread_id"])
    assert (done["run_id"], done["status"]) == (planned["run_id"], "completed")


async def test_a_plan_is_no_question_to_a_person(model, tmp_path):
    model.reset(SIMPLE)
    person = Person(["accept"])
    async with hosted(model.base_url, tmp_path, person=person) as host:
        assert (await host.run("plan", **QUESTION))["status"] == "interrupted"
    assert person.asked == []


async def test_get_run_returns_the_result_of_an_earlier_run(host: Host):
    run = await host.run(**QUESTION)
    assert await host.run("get_run", run_id=run["run_id"]) == run


@pytest.mark.parametrize("mode", ERAS)
async def test_a_question_is_shown_as_a_form(model, tmp_path, mode):
    model.reset(ASKING)
    person = Person(["2026"])
    async with hosted(model.base_url, tmp_path, mode=mode, person=person) as host:
        run = await host.run(**QUESTION)
    assert run["status"] == "completed"
    assert person.asked == ["Which year?\n- 2025\n- 2026"]
    assert any("2026" in str(one["messages"][-1]) for one in model.requests)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("person", [None, Person()], ids=["no forms", "declined"])
async def test_without_an_answer_the_result_has_the_question_and_how_to_answer(model, tmp_path, mode, person):
    model.reset(ASKING)
    async with hosted(model.base_url, tmp_path, mode=mode, person=person) as host:
        result = await host.call("ask_team", **QUESTION)
        run = result.structured_content
        assert (run["status"], run["waits_for"][0]["kind"]) == ("interrupted", "question")
        told = words(result)
        assert "Which year?" in told
        assert f'thread_id "{run["thread_id"]}"' in told
        assert not result.is_error

        answered = await host.run(question="2026", thread_id=run["thread_id"])
        assert (answered["run_id"], answered["status"]) == (run["run_id"], "completed")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_plan_is_reviewed_by_form_until_it_is_accepted(model, tmp_path, mode):
    model.reset(SIMPLE)
    person = Person(["Do it in one step.", "accept"])
    async with hosted(model.base_url, tmp_path, mode=mode, person=person) as host:
        run = await host.run(review_plan=True, **QUESTION)
    assert run["status"] == "completed"
    assert len(person.asked) == 2
    assert "1. coder: Compute: Compute 1 + 3 with Python." in person.asked[0]


async def test_a_tool_that_needs_approval_waits_for_a_persons_word(model, tmp_path):
    model.reset(CRAWLING)
    person = Person(["What is in it?", "No, never."])
    async with hosted(
        model.base_url, tmp_path, mode="legacy", person=person, runs={"approval": ["crawl_tool"]}
    ) as host:
        run = await host.run(**QUESTION)
    assert run["status"] == "completed"
    assert "crawl_tool asks for approval" in person.asked[0]
    assert "http://127.0.0.1:9/secret" in person.asked[0]
    assert len(person.asked) == 2, "a question decides nothing"
    assert any("No, never." in str(one["messages"]) for one in model.requests)


async def test_a_host_that_can_only_send_texts_may_answer_with_an_object_as_text(model, tmp_path):
    model.reset(CRAWLING)
    async with hosted(model.base_url, tmp_path, runs={"approval": ["crawl_tool"]}) as host:
        asked = await host.run(**QUESTION)
        assert asked["status"] == "interrupted"
        answer = json.dumps({"type": "reject", "message": "there is no backup of it"})
        done = await host.run(question=answer, thread_id=asked["thread_id"])
    assert done["status"] == "completed"
    assert any("there is no backup of it" in str(one["messages"]) for one in model.requests)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("tool", ["ask_team", "plan"])
async def test_a_call_that_is_cancelled_leaves_its_run(model, tmp_path, mode, tool):
    model.reset({**SIMPLE, "planner": [{"hang": True}, *SIMPLE["planner"]]})
    async with hosted(model.base_url, tmp_path, mode=mode) as host:
        lines = list[str]()
        began = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            lines.append(message or "")
            if message == "planner begins":
                began.set()

        async with anyio.create_task_group() as calls:
            calls.start_soon(lambda: host.client.call_tool(tool, QUESTION, progress_callback=hear))
            await began.wait()
            calls.cancel_scope.cancel()
        newest = await host.run("get_run")
        assert newest["status"] == "running"
        assert newest["run_id"] in lines[0], "the client learns the id before the answer"
        await anyio.to_thread.run_sync(model.release)
        done = await host.run("get_run", run_id=newest["run_id"], wait_seconds=60)
    assert done["status"] == ("completed" if tool == "ask_team" else "interrupted")


@pytest.mark.parametrize("tool", ["ask_team", "plan"])
async def test_a_call_returns_the_run_when_its_time_is_over(model, tmp_path, tool):
    model.reset({**SIMPLE, "planner": [{"hang": True}, *SIMPLE["planner"]]})
    async with hosted(model.base_url, tmp_path) as host:
        run = await host.run(tool, **QUESTION, wait_seconds=0.05)
        assert run["status"] in ("queued", "running")
        again = await host.run("get_run", run_id=run["run_id"], wait_seconds=0.05)
        assert again["run_id"] == run["run_id"]
        assert again["status"] in ("queued", "running")
        await anyio.to_thread.run_sync(model.release)
        done = await host.run("get_run", run_id=run["run_id"], wait_seconds=60)
        assert done["status"] == ("completed" if tool == "ask_team" else "interrupted")
        assert host.service is not None
        assert len(await host.service.store.runs.list("", 10)) == 1


async def test_only_cancel_run_ends_a_run(model, tmp_path):
    model.reset(HANGING)
    async with hosted(model.base_url, tmp_path) as host:
        run = await host.run(**QUESTION, wait_seconds=0)
        ended = await host.run("cancel_run", run_id=run["run_id"])
        assert (ended["run_id"], ended["status"]) == (run["run_id"], "cancelled")
        assert (await host.run("cancel_run", run_id=run["run_id"]))["status"] == "cancelled"
        assert (await host.call("cancel_run", run_id="unknown")).is_error
        assert (await host.call("cancel_run")).is_error


async def test_get_run_without_a_run_says_that_there_is_none(host: Host):
    result = await host.call("get_run")
    assert result.is_error


async def test_a_call_to_a_stopping_server_reports_that_its_run_continues(model, tmp_path):
    model.reset(HANGING)
    async with hosted(model.base_url, tmp_path, runs={"drain_seconds": 0.1}) as host:
        assert host.service is not None
        service = host.service

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            if message == "coder begins":
                stopping.append(asyncio.create_task(service.engine.drain()))

        stopping: list[asyncio.Task[None]] = []
        result = await host.client.call_tool("ask_team", QUESTION, progress_callback=hear)
        await asyncio.gather(*stopping)
        assert (result.is_error, result.structured_content["status"]) == (False, "running")
        assert "get_run" in words(result)
        refused = await host.call("ask_team", **QUESTION)
        assert (refused.is_error, words(refused)) == (
            True,
            "The service is stopping. Try again in a moment.",
        )


async def test_a_person_sees_every_letter_of_what_is_to_be_approved(model, tmp_path):
    hidden = call("crawl_tool", url="http://127.0.0.1:9/\u202egpj.exe\u200b")
    model.reset({**CRAWLING, "researcher": [hidden, reply("It was refused.")]})
    person = Person(["No."])
    approval = {"approval": ["crawl_tool"]}
    async with hosted(model.base_url, tmp_path, person=person, runs=approval) as host:
        await host.run(**QUESTION)
    assert "http://127.0.0.1:9/\\u202egpj.exe\\u200b" in person.asked[0]


async def test_a_run_whose_model_cannot_be_reached_says_what_it_waits_for(tmp_path):
    async with hosted("http://127.0.0.1:9/v1", tmp_path) as host:
        result = await host.call("ask_team", **QUESTION)
        while not result.structured_content["outage"]:
            result = await host.call("get_run", run_id=result.structured_content["run_id"], wait_seconds=1)
        await host.call("cancel_run", run_id=result.structured_content["run_id"])
    assert result.structured_content["status"] == "queued"
    assert "http://127.0.0.1:9/v1" in words(result)


async def test_a_model_that_cannot_be_reached_is_reported_in_words(tmp_path):
    async with hosted("http://127.0.0.1:9/v1", tmp_path, runs={"outage_seconds": 0}) as host:
        result = await host.call("ask_team", **QUESTION)
    assert result.is_error
    assert result.structured_content["error"]["code"]
    assert "http://127.0.0.1:9/v1" in words(result)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("ask_team", {}, "question: Field required"),
        ("ask_team", {"question": " \n"}, "question: Value error, it is empty"),
        ("ask_team", {"question": 7}, "question: Input should be a valid string"),
        ("ask_team", {"question": "\ud83d"}, "question: Input should be a valid string"),
        ("ask_team", {"question": "x" * 200_001}, "question: String should have at most 200000 characters"),
        ("ask_team", {"question": "x", "thread_id": "../../etc"}, "thread_id: String should match pattern"),
        ("ask_team", {"question": "x", "more": 1}, "more: Extra inputs are not permitted"),
        ("ask_team", {"question": "x", "agent": "root"}, "'root' does not answer alone here"),
        ("plan", {"question": ["x"]}, "question: Input should be a valid string"),
        ("get_run", {"run_id": "no-such-run"}, "The run does not exist."),
        ("get_run", {"run_id": "' OR 1=1"}, "run_id: String should match pattern"),
    ],
)
async def test_what_does_not_fit_is_refused_in_words(host: Host, tool, arguments, told):
    result = await host.call(tool, **arguments)
    assert result.is_error
    assert told in words(result)
    assert len(words(result)) < 1_000


async def test_an_unknown_tool_is_refused(host: Host):
    with pytest.raises(MCPError, match="ask_team, plan, get_run"):
        await host.call("rm")


async def test_a_forged_answer_reaches_no_run(host: Host):
    forged = ElicitResult(action="accept", content={"answer": "approve"})
    result = await host.client.session.call_tool(
        "ask_team", QUESTION, input_responses={"x": forged}, request_state="no-such-run"
    )
    assert result.is_error
    assert "The run does not exist." in words(result)


@pytest.mark.slow
async def test_twenty_callers_at_once_each_get_their_own_answer(model, tmp_path):
    script = {**BRIEF, "reporter": [reply("The report of {run}.")]}
    model.reset(script)
    async with hosted(model.base_url, tmp_path) as host:
        asked = [host.call("ask_team", question=f"1+3=? #run=r{number}") for number in range(20)]
        results = await asyncio.gather(*asked)
    answers = [result.structured_content["answer"] for result in results]
    assert answers == [f"The report of r{number}." for number in range(20)]


async def test_an_internal_error_reveals_nothing_to_a_client(host: Host, monkeypatch, caplog):
    async def broken(*_: object) -> None:
        raise RuntimeError("canary-0123456789")

    assert host.service is not None
    monkeypatch.setattr(type(host.service.engine), "status", broken)
    result = await host.call("get_run", run_id="x")
    assert result.is_error
    assert "internal error" in words(result)
    assert "canary" not in words(result)


async def test_what_the_user_writes_to_a_working_run_is_reported_and_in_its_result(model, tmp_path):
    answer = {"decision": "answer", "reply": "Gladly.", "changes": [], "steps": []}
    held = {**SIMPLE["coder"][-1], "hang_after": 0}
    model.reset({**SIMPLE, "coder": [held], "supervisor": [reply(json.dumps(answer))]})
    async with hosted(model.base_url, tmp_path) as host:
        assert host.service is not None
        engine, told = host.service.engine, []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)
            if message == "coder begins":
                [run] = await host.service.store.runs.list("", 10, None)
                await engine.send_message(run.run_id, "Use euros\nthroughout.")
            elif message == "the lead replies: Gladly.":
                await anyio.to_thread.run_sync(model.release)

        result = await host.client.call_tool("ask_team", QUESTION, progress_callback=hear)
    assert "the user writes: Use euros throughout." in told
    run = result.structured_content
    assert run["status"] == "completed"
    assert run["messages"] == [{"message": "Use euros\nthroughout.", "reply": "Gladly."}]
    assert "Use euros" in words(result)

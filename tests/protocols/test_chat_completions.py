"""Chat Completions with OpenAI's own Python client."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello! How are you?")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
SUM = [{"role": "user", "content": "1+3=?"}]
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk"
    "+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
SOUND = {"type": "input_audio", "input_audio": {}}
NAMED_FILE = {"type": "file", "file": {"file_id": "f"}}


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=100, max_retries=0) as it:
        yield it


async def ask(client: AsyncOpenAI, messages: list[dict[str, Any]], **options: Any) -> Any:
    given: Any = {"model": "maniple", "messages": messages, **options}
    return await client.chat.completions.create(**given)


async def streamed(client: AsyncOpenAI, messages: list[dict[str, Any]], **options: Any) -> list[Any]:
    return [chunk async for chunk in await ask(client, messages, stream=True, **options)]


def said(chunks: list[Any], name: str = "content") -> str:
    deltas = (chunk.choices[0].delta for chunk in chunks if chunk.choices)
    return "".join(getattr(delta, name, None) or "" for delta in deltas)


async def test_the_models_are_the_team_and_the_agents_that_answer_alone(client: AsyncOpenAI):
    assert next(iter([one.id async for one in client.models.list()])) == "maniple"
    assert (await client.models.retrieve("maniple")).object == "model"
    with pytest.raises(openai.NotFoundError) as refused:
        await client.models.retrieve("gpt-4o")
    assert refused.value.code == "model_not_found"


async def test_a_task_streams_its_progress_as_reasoning_and_its_report_as_the_answer(client: AsyncOpenAI):
    chunks = await streamed(client, SUM)
    assert "4" in said(chunks)
    assert '"steps"' not in said(chunks) + said(chunks, "reasoning_content")
    assert "python_repl_tool" in said(chunks, "reasoning_content")
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert chunks[-1].usage.total_tokens > 0


async def test_small_talk_is_answered_without_progress_of_a_plan(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    answer = await ask(client, [{"role": "user", "content": "Hi"}])
    assert answer.choices[0].message.content == "Hello! How are you?"
    assert answer.usage.prompt_tokens > 0


async def test_the_usage_has_a_chunk_of_its_own_if_asked_for(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    chunks = await streamed(client, SUM, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens > 0
    assert chunks[-2].usage is None


async def test_the_history_that_a_client_sends_back_continues_the_conversation(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset(TALK)
    first = await ask(
        client,
        [
            {"role": "system", "content": "Be brief."},
            *SUM,
        ],
    )
    shortened = {"role": "assistant", "content": "Hello!"}
    second = await ask(client, [*SUM, shortened, {"role": "user", "content": "And now?"}])
    assert second.thread_id == first.thread_id
    assert second.id != first.id


async def test_a_conversation_is_named_by_its_metadata(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    answers = [await ask(client, SUM, metadata={"thread_id": "named"}) for _ in range(2)]
    assert {one.thread_id for one in answers} == {"named"}
    assert answers[0].id != answers[1].id


async def test_a_question_of_the_team_is_the_answer_and_the_next_message_answers_it(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset(ASKS)
    asked = await ask(client, SUM)
    question = asked.choices[0].message.content
    assert "Which numbers?" in question
    answered = await ask(
        client, [*SUM, {"role": "assistant", "content": question}, {"role": "user", "content": "1 and 3"}]
    )
    assert "4" in answered.choices[0].message.content
    assert answered.thread_id == asked.thread_id


async def test_a_plan_is_reviewed_in_words(client: AsyncOpenAI):
    shown = await ask(client, SUM, metadata={"auto_accepted_plan": "false"})
    plan = shown.choices[0].message.content
    assert "1. Compute" in plan
    done = await ask(
        client, [*SUM, {"role": "assistant", "content": plan}, {"role": "user", "content": "accept"}]
    )
    assert "4" in done.choices[0].message.content


async def test_a_question_about_a_plan_is_answered_and_the_plan_waits_on(
    client: AsyncOpenAI, model: OpenAIServer
):
    no = "No, it deletes the file for good."
    model.reset({**SIMPLE, "supervisor": [reply(json.dumps({"is_question": True, "reply": no}))]})
    shown = await ask(client, SUM, metadata={"auto_accepted_plan": "false"})
    history = [*SUM, {"role": "assistant", "content": shown.choices[0].message.content}]
    asked = await ask(client, [*history, {"role": "user", "content": "Is it undoable?"}])
    answer = asked.choices[0].message.content
    assert answer.startswith(no)
    assert "accept" in answer
    history += [{"role": "user", "content": "Is it undoable?"}, {"role": "assistant", "content": answer}]
    done = await ask(client, [*history, {"role": "user", "content": "accept"}])
    assert "4" in done.choices[0].message.content


async def test_a_tool_call_is_approved_with_other_arguments(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]})
    asked = await ask(client, SUM)
    assert "echo 5" in asked.choices[0].message.content
    edit = json.dumps({"type": "edit", "args": {"cmd": "echo edited"}})
    history = [*SUM, {"role": "assistant", "content": "May it?"}, {"role": "user", "content": edit}]
    done = await ask(client, history)
    assert "4" in done.choices[0].message.content
    assert "edited" in json.dumps(model.requests)


async def test_a_run_that_fails_is_an_error_of_the_api_and_is_not_done_twice(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    with pytest.raises(openai.APIStatusError) as failed:
        await ask(client.with_options(max_retries=2), SUM)
    assert failed.value.status_code == 500
    assert failed.value.code
    assert model.stats["calls"] <= 2
    with pytest.raises(openai.APIError):
        await streamed(client, SUM)


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools.0.type"),
        ({"n": 2}, "n"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"metadata": {"depth": "bottomless"}}, "metadata.depth"),
        ({"messages": [{"role": "assistant", "content": "Hi"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [SOUND]}]},
            "messages.0.content.0",
        ),
        (
            {"messages": [{"role": "user", "content": [NAMED_FILE]}]},
            "messages.0.content.0",
        ),
        ({"messages": []}, "messages"),
    ],
)
async def test_what_the_team_cannot_do_is_refused_by_name(client: AsyncOpenAI, options: Any, param: str):
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(client, **{"messages": SUM, **options})
    assert refused.value.param == param


async def test_what_has_no_effect_is_named(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    answer = await ask(client, SUM, temperature=0.2, seed=1)
    assert sorted(answer.not_used) == ["seed", "temperature"]


@pytest.mark.parametrize(
    ("options", "used", "not_used"),
    [
        ({"reasoning_effort": "low"}, "low", []),
        ({"reasoning_effort": "minimal"}, None, ["reasoning_effort"]),
        ({"reasoning_effort": "low", "metadata": {"effort": "high"}}, "high", ["reasoning_effort"]),
        ({"reasoning_effort": "high", "metadata": {"effort": "high"}}, "high", []),
    ],
)
async def test_an_effort_is_that_of_the_run_or_named(
    client: AsyncOpenAI, model: OpenAIServer, options: Any, used: str | None, not_used: list[str]
):
    model.reset(TALK)
    answer = await ask(client, SUM, **options)
    assert answer.to_dict()["not_used"] == not_used
    assert [one.get("reasoning_effort") for one in model.requests] == [used]


async def test_pictures_and_files_reach_the_team(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(
        {**SIMPLE, "coder": [call("python_repl_tool", code="print(open('n.csv').read())"), reply("4")]}
    )
    content = base64.b64encode(b"a;b\n1;3\n").decode()
    parts = [
        {"type": "text", "text": "Add them up."},
        {"type": "image_url", "image_url": {"url": PICTURE}},
        {"type": "file", "file": {"filename": "n.csv", "file_data": f"data:text/csv;base64,{content}"}},
    ]
    asked = [{"role": "user", "content": parts}]
    answer = await ask(client, asked)
    assert "1;3" in json.dumps(model.requests)
    assert "data:image/png" in json.dumps(model.requests)
    model.reset(TALK)
    said = {"role": "assistant", "content": answer.choices[0].message.content}
    follow_up = {"role": "user", "content": "Thanks."}
    assert (await ask(client, [*asked, said, follow_up])).not_used == []
    other = [{"role": "user", "content": parts[1:]}, {"role": "assistant", "content": "?"}, follow_up]
    assert (await ask(client, other)).not_used == ["messages.0.content.1"]


async def test_a_client_that_left_gets_the_answer_of_its_request(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{**SIMPLE["coder"][0], "hang": True}, *SIMPLE["coder"][1:]]})
    with pytest.raises(openai.APITimeoutError):
        await ask(client.with_options(timeout=2), SUM)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    model.release()
    answer = await ask(client, SUM)
    assert "4" in answer.choices[0].message.content
    assert model.stats["by_role"]["planner"] == 1
    again = await ask(client, SUM)
    assert again.id != answer.id, "an answer that was delivered is asked for anew"


async def test_a_retry_of_the_client_itself_joins_the_run_at_work(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{**SIMPLE["coder"][0], "delay_seconds": 5}, *SIMPLE["coder"][1:]]})
    answer = await ask(client.with_options(timeout=4, max_retries=5), SUM)
    assert "4" in answer.choices[0].message.content
    assert model.stats["by_role"]["planner"] == 1


@pytest.mark.slow
async def test_a_killed_server_gives_the_answer_after_its_restart(model: OpenAIServer, tmp_path: Path):
    model.reset({**SIMPLE, "reporter": [{**reply("It is 4."), "hang": True}]})
    env = environment(model.base_url, tmp_path)
    with server_process(env, tmp_path) as process:
        async with AsyncOpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0) as client:
            with pytest.raises((openai.APIError, httpx.HTTPError)):
                async for chunk in await ask(client, SUM, stream=True):
                    if "reporter begins" in (getattr(chunk.choices[0].delta, "reasoning_content", "") or ""):
                        process.process.kill()
    model.reset(SIMPLE)
    with server_process(env, tmp_path) as process:
        async with AsyncOpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0) as client:
            answer = await ask(client, SUM)
    assert "4" in answer.choices[0].message.content
    assert model.stats["by_role"].get("planner", 0) == 0


async def test_errors_before_the_routes_have_the_same_form(server: ServerProcess, home: Path):
    async with httpx.AsyncClient(base_url=server.url) as client:
        for response in (
            await client.get("/v1/nothing"),
            await client.post("/v1/chat/completions", content="{"),
        ):
            assert response.status_code in (400, 404)
            assert response.json()["error"]["code"]

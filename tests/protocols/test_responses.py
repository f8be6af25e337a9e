"""Responses with OpenAI's own Python client."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello, how are you?")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
USER = {"type": "message", "role": "user"}
SCHEMA = {"format": {"type": "json_schema", "name": "a", "schema": {}}}


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=100, max_retries=0) as it:
        yield it


async def ask(client: AsyncOpenAI, given: Any = "1+3=?", **options: Any) -> Any:
    return await client.responses.create(model="maniple", input=given, **options)


async def events(stream: Any) -> list[Any]:
    return [event async for event in stream]


async def test_a_task_streams_its_progress_its_calls_and_its_answer(client: AsyncOpenAI):
    found = await events(await ask(client, stream=True))
    assert [event.sequence_number for event in found] == list(range(len(found)))
    assert (found[0].type, found[-1].type) == ("response.created", "response.completed")
    response = found[-1].response
    assert "code_interpreter_call" in [one.type for one in response.output]
    assert [one.phase for one in response.output if one.type == "message"] == ["final_answer"]
    assert "coder" in response.output[0].summary[0].text
    said = "".join(one.delta for one in found if one.type == "response.output_text.delta")
    assert "4" in said
    assert '"steps"' not in said
    assert response.usage.total_tokens > 0


async def test_a_conversation_goes_on_from_its_previous_response(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    first = await ask(client)
    second = await ask(client, "And now?", previous_response_id=first.id)
    assert second.conversation.id == first.conversation.id
    assert second.previous_response_id == first.id


async def test_a_question_is_the_answer_and_the_next_input_answers_it(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset(ASKS)
    asked = await ask(client)
    assert "Which numbers?" in asked.output_text
    answered = await ask(client, "1 and 3", previous_response_id=asked.id)
    assert "4" in answered.output_text
    assert answered.id != asked.id
    assert (await client.responses.retrieve(asked.id)).output_text == asked.output_text


async def test_a_response_in_the_background_is_followed_and_its_stream_resumed(client: AsyncOpenAI):
    begun = await ask(client, background=True)
    assert begun.status in ("queued", "in_progress")
    whole = await events(await client.responses.retrieve(begun.id, stream=True))
    rest = await events(await client.responses.retrieve(begun.id, stream=True, starting_after=5))
    assert [one.to_dict() for one in rest] == [one.to_dict() for one in whole[6:]]
    assert (await client.responses.retrieve(begun.id)).output_text == whole[-1].response.output_text


async def test_a_response_is_cancelled_and_deleted(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    begun = await ask(client, background=True)
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    assert (await client.responses.cancel(begun.id)).status == "cancelled"
    items: Any = await client.responses.input_items.list(begun.id)
    assert items.data[0].content[0].text == "1+3=?"
    deleted = (await client.responses.with_raw_response.delete(begun.id)).http_response.json()
    assert (deleted["deleted"], len(deleted["deleted_threads"])) == (True, 1)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(begun.id)


async def test_a_run_that_fails_is_a_failed_response(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    answer = await ask(client)
    assert answer.status == "failed"
    assert answer.error.message


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"tools": [{"type": "custom", "name": "f"}]}, "tools"),
        ({"text": SCHEMA}, "text.format"),
        ({"input": [{**USER, "role": "assistant", "content": "Hi"}]}, "messages"),
        ({"model": "gpt-4o"}, "model"),
        ({"previous_response_id": "resp_none"}, "previous_response_id"),
    ],
)
async def test_what_the_team_cannot_do_is_refused_by_name(client: AsyncOpenAI, options: Any, param: str):
    with pytest.raises(openai.APIStatusError) as refused:
        await client.responses.create(**{"model": "maniple", "input": "1+3=?", **options})
    assert refused.value.status_code in (400, 404)
    assert refused.value.param == param


async def test_the_options_of_own_tools_and_of_the_text_are_named_as_unused(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset(TALK)
    tool: Any = {"type": "web_search", "external_web_access": False}
    answer = await ask(client, tools=[tool], text={"verbosity": "low"}, temperature=0)
    assert answer.to_dict()["not_used"] == ["temperature", "tools.0.external_web_access", "text.verbosity"]


@pytest.mark.parametrize(
    ("options", "used", "not_used"),
    [
        ({"reasoning": {"effort": "low"}}, "low", []),
        ({"reasoning": {"effort": "xhigh"}}, None, ["reasoning.effort"]),
        ({"reasoning": {"summary": "auto"}}, None, ["reasoning.summary"]),
        ({"extra_body": {"reasoning_effort": "low"}}, None, ["reasoning_effort"]),
    ],
)
async def test_an_effort_is_that_of_the_run_or_named(
    client: AsyncOpenAI, model: OpenAIServer, options: Any, used: str | None, not_used: list[str]
):
    model.reset(TALK)
    answer = await ask(client, **options)
    assert answer.to_dict()["not_used"] == not_used
    assert answer.to_dict()["reasoning"]["effort"] == used
    assert [one.get("reasoning_effort") for one in model.requests] == [used]


@pytest.mark.parametrize(
    "wrong", [{"tools": 5}, {"reasoning": "low"}, {"tools": ["web_search"]}, {"text": "short"}], ids=str
)
async def test_tools_and_text_of_another_form_are_refused(client: AsyncOpenAI, wrong: Any):
    with pytest.raises(openai.BadRequestError):
        await ask(client, extra_body=wrong)


async def test_a_client_that_times_out_gets_the_same_response(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{**SIMPLE["coder"][0], "delay_seconds": 5}, *SIMPLE["coder"][1:]]})
    answer = await ask(client.with_options(timeout=4, max_retries=5))
    assert "4" in answer.output_text
    assert model.stats["by_role"]["planner"] == 1


async def test_the_request_of_another_client_gets_a_run_of_its_own_while_an_answer_streams(
    client: AsyncOpenAI, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [{**SIMPLE["coder"][0], "hang": True}, *SIMPLE["coder"][1:]]})
    stream = await ask(client, stream=True)
    first = (await anext(stream)).response
    async with asyncio.TaskGroup() as tasks:
        other = tasks.create_task(ask(client))
        await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 2)
        model.release()
        rest = tasks.create_task(events(stream))
    assert other.result().id != first.id == rest.result()[-1].response.id


@pytest.mark.slow
async def test_a_killed_server_finishes_the_response_after_its_restart(model: OpenAIServer, tmp_path: Path):
    model.reset({**SIMPLE, "reporter": [{**reply("It is 4."), "hang": True}]})
    env = environment(model.base_url, tmp_path)
    with server_process(env, tmp_path) as process:
        async with AsyncOpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0) as client:
            begun = await ask(client, background=True)
            model.wait_for(lambda stats: stats["by_role"].get("reporter") == 1)
            process.process.kill()
    model.reset(SIMPLE)
    with server_process(env, tmp_path) as process:
        async with AsyncOpenAI(base_url=f"{process.url}/v1", api_key="none", max_retries=0) as client:
            found = await events(await client.responses.retrieve(begun.id, stream=True))
    assert "4" in found[-1].response.output_text
    assert json.dumps(model.requests).count("You are the planner") == 0


async def test_parameters_of_chat_completions_are_named_as_unused(client: AsyncOpenAI, model: OpenAIServer):
    model.reset(TALK)
    extra = {"n": 2, "messages": [], "stream_options": {"include_usage": "?"}}
    answer = await ask(client, extra_body=extra)
    assert {*extra} <= {*answer.not_used}

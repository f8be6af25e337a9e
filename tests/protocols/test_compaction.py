"""`POST /v1/responses/compact`: what is compacted is read as if the whole conversation had been sent."""

import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError, ConflictError

from maniple.api.protocols.compaction import (
    MAX_CONTENT_BYTES,
    CompactedMessages,
    CompactionReader,
    OtherMessage,
)
from maniple.api.protocols.conversations import AnsweredRuns
from maniple.api.protocols.responses_desk import ResponseDesk
from maniple.api.protocols.responses_request import MAX_ITEMS, ResponseBody
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols.test_chat_completions import PICTURE
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
PATH = "/v1/responses/compact"
QUESTION = {"type": "message", "role": "user", "content": "And 1+3?"}
EARLIER = [
    {"role": "system", "content": "Answer in Latin."},
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A handful of soldiers. " * 40},
    {"role": "user", "content": "How many?"},
    {"role": "assistant", "content": "Eight men share a tent."},
]
NOT_READ = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "web_search_call", "status": "completed"},
    {"type": "code_interpreter_call", "code": "print(8)", "outputs": [{"type": "logs", "logs": "8"}]},
]


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=100, max_retries=0) as it:
        yield it


@pytest.fixture
async def it(model: OpenAIServer, tmp_path: Path) -> AsyncIterator[InProcessService]:
    async with open_service(model.base_url, tmp_path) as opened:
        yield opened


async def compact(it: InProcessService, given: Any, **more: Any) -> Any:
    """Return the answer, whose output is to be sent as it is."""
    answer = await it.client.post(PATH, json={"model": "maniple", "input": given, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def read(it: InProcessService, items: list[Any]) -> list[Any]:
    """Return the messages that a run gets of an input."""
    body = ResponseBody.model_validate({"model": "maniple", "input": items})
    question = await ResponseDesk(it.service, "", AnsweredRuns()).read(body)
    return [(one.type, one.content) for one in question.messages]


def write_conversation(chance: random.Random) -> list[Any]:
    """Return items in any order, as clients send them."""
    return [write_item(chance) for _ in range(chance.randrange(1, 12))]


def write_item(chance: random.Random) -> Any:
    if chance.random() < 0.2:
        return chance.choice(NOT_READ)
    role = chance.choice(("user", "user", "assistant", "assistant", "system", "developer"))
    text = "".join(chance.choices("ab \n\"'ä漢😀", k=chance.randrange(0, 40)))
    kind = "output_text" if role == "assistant" else "input_text"
    picture = {"type": "input_image", "image_url": PICTURE}
    content = chance.choice(
        (text, [{"type": kind, "text": text}], [{"type": kind, "text": text}] * 2, [picture], [picture] * 2)
    )
    return {"type": "message", "role": role, "content": content}


@pytest.mark.parametrize("seed", range(2))
async def test_a_compacted_conversation_is_read_as_the_whole_one(it: InProcessService, seed: int):
    chance = random.Random(seed)
    for _ in range(20):
        first, second = write_conversation(chance), write_conversation(chance)
        whole = await read(it, [*first, *second, QUESTION])
        once = await compact(it, first + second)
        assert await read(it, [*once["output"], QUESTION]) == whole
        begun = (await compact(it, first))["output"]
        assert await read(it, [*begun, *second, QUESTION]) == whole
        again = await compact(it, begun + second)
        assert await read(it, [*again["output"], QUESTION]) == whole
        assert [one["type"] for one in again["output"]].count("compaction") == 1
        assert {one["role"] for one in again["output"][:-1]} <= {"user"}


def prompts_of(model: OpenAIServer) -> list[str]:
    """Return the prompts without the marks that each run draws for results of tools."""
    return [re.sub(r"[0-9a-f]{8}", "", json.dumps(one["messages"])) for one in model.requests]


async def test_the_models_are_sent_the_same_prompts(client: AsyncOpenAI, model: OpenAIServer):
    await client.responses.create(model="maniple", input=[*EARLIER, QUESTION])  # type: ignore[list-item]
    whole = prompts_of(model)
    model.reset(SIMPLE)
    compacted = await client.responses.compact(model="maniple", input=EARLIER)  # type: ignore[arg-type]
    assert model.requests == []
    given: Any = [*(one.to_dict(warnings=False) for one in compacted.output), QUESTION]
    await client.responses.create(model="maniple", input=given)
    assert prompts_of(model) == whole


async def test_what_no_run_reads_is_named_and_left_out(it: InProcessService):
    unread = await compact(it, [*EARLIER, *NOT_READ], prompt_cache_key="a", instructions="Be short.")
    assert unread["not_used"] == [
        "input.5",
        "input.6",
        "input.7",
        "prompt_cache_key",
        "instructions",
    ]
    assert len(unread["output"]) == 3
    assert unread["usage"]["total_tokens"] == 0


async def test_the_conversation_of_a_response_is_compacted(client: AsyncOpenAI, model: OpenAIServer):
    first = await client.responses.create(model="maniple", input="1+3=?")
    compacted = await client.responses.compact(
        model="maniple", previous_response_id=first.id, input="Thanks."
    )
    output: list[Any] = [one.to_dict(warnings=False) for one in compacted.output]
    texts = [one["content"][0]["text"] for one in output[:-1]]
    assert texts == ["1+3=?", "Thanks."]
    model.reset({"coordinator": [reply("Ave!")]})
    given: Any = [*output, QUESTION]
    answered = await client.responses.create(model="maniple", input=given)
    assert answered.id.split("_")[1] != first.id.split("_")[1]
    assert "The answer is **4**." in json.dumps(model.requests[0])


async def test_a_conversation_that_waits_is_not_compacted(client: AsyncOpenAI, model: OpenAIServer):
    model.reset({"coordinator": [call("ask_user", question="Which numbers?")]})
    asked = await client.responses.create(model="maniple", input="Add them.")
    with pytest.raises(ConflictError) as refused:
        await client.responses.compact(model="maniple", previous_response_id=asked.id)
    assert refused.value.code == "thread_busy"


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": [QUESTION] * MAX_ITEMS}, "input"),
        ({"input": [{"role": "king", "content": "a"}]}, "input.0.role"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ],
)
async def test_what_cannot_be_compacted_is_refused(client: AsyncOpenAI, given: Any, param: str):
    with pytest.raises(BadRequestError) as refused:
        await client.responses.compact(model="maniple", **given)
    assert str(refused.value.param).startswith(param)


async def test_an_item_that_was_changed_or_lacks_its_messages_is_refused(it: InProcessService):
    *asked, item = (await compact(it, EARLIER))["output"]
    content = item["encrypted_content"]
    changed = [content[:-8] + "AAAAAAA=", content[4:], "", "é", None, 1]
    inputs = [[*asked, {**item, "encrypted_content": one}, QUESTION] for one in changed]
    inputs += [[item, QUESTION], [*asked[1:], item, QUESTION]]
    for items in inputs:
        answer = await it.client.post("/v1/responses", json={"model": "maniple", "input": items})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "invalid_value")
        assert error["param"].endswith(".encrypted_content")


async def test_an_item_of_another_key_is_refused(it: InProcessService):
    ada, bob = await it.key("ada"), await it.key("bob")
    answer = await it.client.post(PATH, json={"model": "maniple", "input": EARLIER}, headers=ada)
    body = {"model": "maniple", "input": [*answer.json()["output"], QUESTION]}
    assert (await it.client.post(PATH, json=body, headers=ada)).status_code == 200
    refused = await it.client.post(PATH, json=body, headers=bob)
    assert refused.json()["error"]["code"] == "invalid_value"


async def test_items_together_hold_only_so_much():
    half = OtherMessage(0, "assistant", "a" * (MAX_CONTENT_BYTES // 2))
    reader = CompactionReader(b"key", "")
    content = reader.pack(CompactedMessages(0, [half]))
    assert len(content) < 100_000
    assert reader.unpack(content).others == [half]
    with pytest.raises(ValueError, match=str(MAX_CONTENT_BYTES)):
        reader.unpack(content)
    with pytest.raises(ValueError, match=str(MAX_CONTENT_BYTES)):
        reader.pack(CompactedMessages(0, [half, half]))


async def test_items_together_stand_for_only_so_many_messages(it: InProcessService):
    answers = [{"role": "assistant", "content": "a"}] * (MAX_ITEMS // 2)
    [item] = (await compact(it, answers))["output"]
    refused = await it.client.post(PATH, json={"model": "maniple", "input": [item, item]})
    assert refused.status_code == 400
    assert "messages" in refused.json()["error"]["message"]


async def test_places_are_those_of_the_input_also_behind_instructions_and_a_compaction(client: AsyncOpenAI):
    compacted = await client.responses.compact(model="maniple", input=EARLIER)  # type: ignore[arg-type]
    given: Any = [*(one.to_dict(warnings=False) for one in compacted.output), NOT_READ[0], QUESTION]
    at = len(compacted.output)
    answer = await client.responses.create(model="maniple", input=given, instructions="Be short.")
    assert answer.model_extra is not None
    assert answer.model_extra["not_used"] == [f"input.{at}"]
    given.append({"role": "king", "content": "a"})
    with pytest.raises(BadRequestError) as refused:
        await client.responses.create(model="maniple", input=given)
    assert refused.value.param == f"input.{at + 2}.role"

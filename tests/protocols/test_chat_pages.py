"""The requests that Open WebUI and LibreChat send, as their own sources make them.

Open WebUI: backend/open_webui/routers/openai.py and tasks.py. LibreChat: "Default Parameters" of its
documentation, over LangChain's client of OpenAI.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello! How are you?")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}


@dataclass(frozen=True)
class Page:
    """A chat page: what it sends with each request, and when it wants a title."""

    name: str
    headers: dict[str, str]
    body: dict[str, Any]
    title: dict[str, Any]
    has_parts: bool

    def messages(self, *texts: str) -> list[dict[str, Any]]:
        """Return a conversation, which begins with the user's text, in the page's form."""
        roles = ["user" if not at % 2 else "assistant" for at in range(len(texts))]
        return [
            {"role": role, "content": self._content(text)} for role, text in zip(roles, texts, strict=True)
        ]

    def _content(self, text: str) -> Any:
        return [{"type": "text", "text": text}] if self.has_parts else text


OPEN_WEBUI = Page(
    "Open WebUI",
    {
        "authorization": "Bearer none",
        "x-openwebui-user-name": "Ann%20Lee",
        "x-openwebui-user-id": "u1",
        "x-openwebui-user-email": "ann@example.org",
        "x-openwebui-user-role": "user",
        "x-openwebui-chat-id": "c1",
    },
    {"stream": True, "model": "maniple", "stream_options": {"include_usage": True}},
    {"model": "maniple", "stream": False, "max_completion_tokens": 1000},
    has_parts=False,
)
LIBRECHAT = Page(
    "LibreChat",
    {
        "authorization": "Bearer none",
        "accept": "application/json",
        "user-agent": "OpenAI/JS 5.23.2",
        "x-stainless-lang": "js",
        "x-stainless-retry-count": "0",
    },
    {
        "model": "maniple",
        "temperature": 1,
        "top_p": 1,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "user": "66b0c0ffee",
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    {"model": "maniple", "temperature": 0.2, "presence_penalty": 0, "frequency_penalty": 0, "stream": False},
    has_parts=True,
)
TITLE = "Write a title of 3 to 5 words for this conversation:\nUser: 1+3=?\nAI: It is 4."


@dataclass
class Visitor:
    """Somebody at a page."""

    page: Page
    http: httpx.AsyncClient

    async def ask(self, *texts: str) -> dict[str, Any]:
        """Send a conversation as the page does; return content, reasoning, reason, usage and error."""
        found: dict[str, Any] = {
            "content": "",
            "reasoning": "",
            "error": None,
            "reason": None,
            "not_used": [],
        }
        body = {**self.page.body, "messages": self.page.messages(*texts)}
        async with self.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                chunk = json.loads(line[6:])
                _add(found, chunk)
        return found


def _add(found: dict[str, Any], chunk: dict[str, Any]) -> None:
    found["error"] = chunk.get("error") or found["error"]
    found["usage"] = chunk.get("usage") or found.get("usage")
    for choice in chunk.get("choices", ()):
        found["content"] += choice["delta"].get("content") or ""
        found["reasoning"] += choice["delta"].get("reasoning_content") or ""
        found["reason"] = choice.get("finish_reason") or found["reason"]


@pytest.fixture(params=[OPEN_WEBUI, LIBRECHAT], ids=lambda page: page.name)
async def visitor(request: pytest.FixtureRequest, server: ServerProcess) -> AsyncIterator[Visitor]:
    page: Page = request.param
    async with httpx.AsyncClient(base_url=server.url, headers=page.headers, timeout=100) as http:
        yield Visitor(page, http)


async def test_the_page_lists_the_models(visitor: Visitor):
    models = (await visitor.http.get("/v1/models")).json()["data"]
    assert models[0]["id"] == "maniple"


async def test_small_talk_is_answered(visitor: Visitor, model: OpenAIServer):
    model.reset(TALK)
    found = await visitor.ask("Hi")
    assert (found["content"], found["reason"]) == ("Hello! How are you?", "stop")
    assert found["usage"]["total_tokens"] > 0


async def test_a_task_shows_its_progress_and_a_follow_up_goes_on(visitor: Visitor, model: OpenAIServer):
    found = await visitor.ask("1+3=?")
    assert "The answer is **4**" in found["content"]
    assert "coder begins" in found["reasoning"]
    model.reset(TALK)
    assert (await visitor.ask("1+3=?", found["content"], "Thanks"))["content"] == "Hello! How are you?"


@pytest.mark.parametrize(
    ("script", "shown", "answer"), [(ASKS, "Which numbers?", "1 and 3"), (APPROVAL, "echo 5", "yes")]
)
async def test_the_next_message_answers_what_the_team_asks(
    visitor: Visitor, model: OpenAIServer, script: Any, shown: str, answer: str
):
    model.reset(script)
    asked = await visitor.ask("1+3=?")
    assert shown in asked["content"]
    assert "4" in (await visitor.ask("1+3=?", asked["content"], answer))["content"]


async def test_an_error_reaches_the_page(visitor: Visitor, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    assert (await visitor.ask("1+3=?"))["error"]["message"]


async def test_a_request_for_a_title_is_answered_as_one_of_its_own(visitor: Visitor, model: OpenAIServer):
    model.reset({"coordinator": [reply("A small sum")]})
    body = {**visitor.page.title, "messages": visitor.page.messages(TITLE)}
    answer = (await visitor.http.post("/v1/chat/completions", json=body)).json()
    assert answer["choices"][0]["message"]["content"] == "A small sum"
    named = {"max_completion_tokens", "temperature", "presence_penalty", "frequency_penalty"}
    assert set(answer["not_used"]) == named & set(visitor.page.title)


async def test_a_page_that_is_closed_leaves_its_run_and_the_same_request_gets_the_answer(
    visitor: Visitor, model: OpenAIServer
):
    question = f"1+3=? asks {visitor.page.name}"
    model.reset({**SIMPLE, "coder": [{**SIMPLE["coder"][0], "hang": True}, *SIMPLE["coder"][1:]]})
    body = {**visitor.page.body, "messages": visitor.page.messages(question)}
    async with visitor.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if "coder begins" in line:
                break
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    model.release()
    assert "4" in (await visitor.ask(question))["content"]
    assert model.stats["by_role"]["planner"] == 1

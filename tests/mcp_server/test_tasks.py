"""The Tasks extension: `ask_team` as a task for the official client, which polls, answers and cancels it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim, advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    InputResponses,
    Request,
    RequestParams,
    Result,
)
from pydantic import ConfigDict

from maniple.mcp_server.tasks import EXTENSION
from maniple.service import open_service
from tests.api.in_process import settings_of
from tests.mcp_server.hosts import ASKING, CRAWLING, HANGING, QUESTION, team_server, words
from tests.mcp_server.site import Site, site
from tests.openai_server import SIMPLE, OpenAIServer

pytestmark = pytest.mark.anyio


class Task(Result):
    """Any shape of a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"

    @property
    def data(self) -> dict[str, Any]:
        return self.model_extra or {}


class TaskParams(RequestParams):
    task_id: str
    input_responses: InputResponses | None = None


class TaskRequest(Request[TaskParams, str]):
    name_param = "taskId"


class Tasks(ClientExtension):
    """Takes tasks as they are: a test looks at each."""

    identifier = EXTENSION

    def claims(self) -> Any:
        return [ResultClaim(result_type="task", model=Task, resolve=self._never)]

    async def _never(self, task: Task, context: ClaimContext) -> CallToolResult:
        raise AssertionError("the tests ask for the task itself")


async def no_form(context: Any, params: ElicitRequestParams) -> ElicitResult:
    raise AssertionError("a task asks in tasks/get")


@dataclass
class TaskHost:
    """A client that takes tasks."""

    client: Client

    async def begin(self, **arguments: Any) -> Any:
        return await self.client.session.call_tool(
            "ask_team", {**QUESTION, **arguments}, allow_claimed=True, allow_input_required=True
        )

    async def ask(self, **arguments: Any) -> str:
        """Ask, and return the task's id."""
        task = await self.begin(**arguments)
        assert isinstance(task, Task)
        return task.data["taskId"]

    async def send(self, method: str, task_id: str, **params: Any) -> dict[str, Any]:
        request = TaskRequest(method=method, params=TaskParams(task_id=task_id, **params))
        answer = await self.client.session.send_request(request, _Anything)
        return answer.model_extra or {}

    async def get(self, task_id: str) -> dict[str, Any]:
        return await self.send("tasks/get", task_id)

    async def until(self, task_id: str, status: str, message: str = "") -> dict[str, Any]:
        """Poll until the task has this status, and this message if one is given, for at most 60 s."""
        async with asyncio.timeout(60):
            while (task := await self.get(task_id))["status"] != status or message not in task_message(task):
                assert task["status"] in ("working", status), task
                await asyncio.sleep(0.02)
        return task

    async def answer(self, task_id: str, action: Any, text: str = "") -> str:
        """Answer the first form of a task that waits; return its message."""
        task = await self.until(task_id, "input_required")
        [key] = task["inputRequests"]
        content: Any = {"answer": text} if action == "accept" else None
        filled: Any = {key: ElicitResult(action=action, content=content)}
        assert set(await self.send("tasks/update", task_id, input_responses=filled)) <= {"resultType"}
        return task["inputRequests"][key]["params"]["message"]


def task_message(task: dict[str, Any]) -> str:
    return task.get("statusMessage", "")


class _Anything(Result):
    model_config = ConfigDict(extra="allow")


@asynccontextmanager
async def task_host(here: Site, secret: str = "", **options: Any) -> AsyncIterator[TaskHost]:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    options = {"extensions": [Tasks()], "elicitation_callback": no_form, **options}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(here.url, http_client=http), **options) as client:
            yield TaskHost(client)


@pytest.fixture
async def here(model: OpenAIServer, tmp_path: Any) -> AsyncIterator[Site]:
    model.reset(SIMPLE)
    settings = {"runs": {"approval": ["crawl_tool"]}}
    async with site(model.base_url, tmp_path, **settings) as found:
        yield found


async def test_a_question_is_a_task_whose_result_is_polled(here: Site):
    async with task_host(here) as host:
        assert host.client.server_capabilities.extensions == {EXTENSION: {}}
        begun = await host.begin()
        assert (begun.result_type, begun.data["status"], begun.data["ttlMs"]) == ("task", "working", None)
        done = await host.until(begun.data["taskId"], "completed")
    assert done["createdAt"] == begun.data["createdAt"] <= done["lastUpdatedAt"]
    result = CallToolResult.model_validate(done["result"])
    assert not result.is_error
    assert "The answer is **4**." in words(result)
    assert result.structured_content is not None
    assert result.structured_content["run_id"] == begun.data["taskId"]


async def test_a_call_that_names_its_wait_returns_the_result_of_a_short_run(here: Site):
    async with task_host(here) as host:
        result = await host.begin(wait_seconds=60)
    assert isinstance(result, CallToolResult)
    assert "The answer is **4**." in words(result)


async def test_a_client_that_declares_no_tasks_gets_none(here: Site):
    async with task_host(here, extensions=[]) as host:
        result = await host.begin()
        assert isinstance(result, CallToolResult)
        run = result.structured_content
        for method in ("tasks/get", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await host.send(method, run["run_id"])
            assert refused.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    async with task_host(here, extensions=[advertise(EXTENSION)], mode="legacy") as host:
        assert not host.client.server_capabilities.extensions
        assert isinstance(await host.begin(), CallToolResult)
        with pytest.raises(MCPError) as refused:
            await host.get(run["run_id"])
        assert refused.value.code == METHOD_NOT_FOUND


async def test_a_task_outlives_its_connection_and_only_tasks_cancel_ends_it(here: Site, model):
    model.reset(HANGING)
    async with task_host(here) as host:
        task_id = await host.ask()
    async with task_host(here) as host:
        assert (await host.get(task_id))["status"] == "working"
        assert await host.send("tasks/cancel", task_id) is not None
        assert (await host.until(task_id, "cancelled"))["statusMessage"]
        assert await host.send("tasks/cancel", task_id) is not None  # one that has ended stays as it is


async def test_a_working_task_names_its_step(here: Site, model):
    model.reset(HANGING)
    async with task_host(here) as host:
        task_id = await host.ask()
        await host.until(task_id, "working", "step 1 of 2, coder: Compute")
        await host.send("tasks/cancel", task_id)


async def test_a_question_to_the_user_is_answered_by_an_update(here: Site, model):
    model.reset(ASKING)
    async with task_host(here) as host:
        task_id = await host.ask()
        assert await host.answer(task_id, "accept", "2026") == "Which year?\n- 2025\n- 2026"
        assert (await host.until(task_id, "completed"))["result"]["structuredContent"]["waits_for"] == []
    assert "2026" in json.dumps(model.requests[-3:])


async def test_a_closed_form_and_an_unknown_answer_leave_the_task_waiting(here: Site, model):
    model.reset(ASKING)
    async with task_host(here) as host:
        task_id = await host.ask()
        await host.answer(task_id, "cancel")
        unknown: Any = {"no-such-pause": ElicitResult(action="accept", content={"answer": "x"})}
        await host.send("tasks/update", task_id, input_responses=unknown)
        assert (await host.get(task_id))["status"] == "input_required"
        await host.answer(task_id, "decline")
        await host.until(task_id, "completed")
    assert "does not want to answer" in json.dumps(model.requests)


async def test_a_declined_approval_is_a_rejection_and_a_declined_plan_ends_the_run(here: Site, model):
    model.reset(CRAWLING)
    async with task_host(here) as host:
        task_id = await host.ask()
        assert "crawl_tool" in await host.answer(task_id, "decline")
        await host.until(task_id, "completed")
        model.reset(SIMPLE)
        task_id = await host.ask(review_plan=True)
        await host.answer(task_id, "accept", "accept")
        await host.until(task_id, "completed")
        task_id = await host.ask(review_plan=True)
        await host.answer(task_id, "decline")
        await host.until(task_id, "cancelled")


async def test_a_client_without_forms_gets_the_question_as_the_result(here: Site, model):
    model.reset(ASKING)
    async with task_host(here, elicitation_callback=None) as host:
        done = await host.until(await host.ask(), "completed")
        thread_id = done["result"]["structuredContent"]["thread_id"]
        assert thread_id in words(CallToolResult.model_validate(done["result"]))
        answered = await host.until(await host.ask(question="2026", thread_id=thread_id), "completed")
    assert answered["result"]["structuredContent"]["status"] == "completed"


async def test_a_failed_run_is_a_result_with_an_error(here: Site, model):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    async with task_host(here) as host:
        done = await host.until(await host.ask(), "completed")
    assert done["result"]["isError"]


async def test_another_keys_task_and_a_wrong_id_are_refused(here: Site):
    (_, mine), (_, other) = await here.key("mine"), await here.key("other")
    async with task_host(here, mine) as host:
        task_id = await host.ask()
        await host.until(task_id, "completed")
    async with task_host(here, other) as host:
        for wrong in (task_id, "unknown", "x\0"):
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(MCPError) as refused:
                    await host.send(method, wrong)
                assert refused.value.code == INVALID_PARAMS


async def test_a_task_needs_no_http(model, tmp_path):
    model.reset(SIMPLE)
    async with open_service(settings_of(model.base_url, tmp_path)) as service:
        async with Client(team_server(service).protocol, extensions=[Tasks()]) as client:
            host = TaskHost(client)
            done = await host.until(await host.ask(), "completed")
    assert "The answer is **4**." in done["result"]["content"][0]["text"]

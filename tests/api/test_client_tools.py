"""Functions that the client runs itself: offered to members, a pause for each call, the answer its result."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.api.in_process import InProcessService, open_service
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.team import data, plan, status, step

pytestmark = pytest.mark.anyio
LOCATION = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "parameters": LOCATION}
STEP = {"agent_name": "researcher", "title": "Look", "description": "Look up the weather."}
ASKS = {
    "by_history": True,
    "coordinator": [call("handoff_to_planner", locale="en-US", step=STEP)],
    "researcher": [call("get_weather", location="Rome"), reply("It is sunny in Rome.")],
}


def calls(*arguments: dict[str, Any]) -> dict[str, Any]:
    """A reply with several calls of the function."""
    return {"tool_calls": [{"name": "get_weather", "arguments": one} for one in arguments]}


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with serving(ASKS) as server:
        yield server


@pytest.fixture
async def service(model: OpenAIServer, tmp_path) -> AsyncIterator[InProcessService]:
    async with open_service(model.base_url, tmp_path) as it:
        yield it


async def start(it: InProcessService, **body: Any) -> tuple[str, list[Any]]:
    """Start a run with the function, and follow it to its pause or end."""
    run = await it.run(client_tools=[WEATHER], **body)
    return run["run_id"], await it.events_of(run["run_id"])


async def answer(it: InProcessService, run_id: str, result: Any, question: str = "") -> list[Any]:
    """Answer what a run waits for; return the events that follow."""
    reply = {"answer": result, "interrupt_id": question}
    answered = await it.client.post(f"/api/runs/{run_id}/resume", json=reply)
    assert answered.status_code == 202, answered.text
    return await it.events_of(run_id, int(answered.headers["location"].partition("after=")[2]))


def results(model: OpenAIServer) -> list[str]:
    """Return the results of tools that the member's newest request has."""
    sent = [one for one in model.requests if "You are the researcher" in json.dumps(one)]
    return [one["content"] for one in sent[-1]["messages"] if one["role"] == "tool"]


async def test_a_call_pauses_the_run_and_the_answer_is_its_result(service, model):
    run_id, events = await start(service)
    [pause] = data(events, "interrupt")
    asked = pause["payload"]["client_call"]
    assert (status(events), pause["kind"]) == ("interrupted", "question")
    assert (asked["name"], asked["arguments"]) == ("get_weather", {"location": "Rome"})
    assert run_id in asked["id"]
    assert "get_weather" in pause["payload"]["question"]
    ended = await answer(service, run_id, {"degrees": 30})
    assert status(ended) == "completed"
    [result] = results(model)
    assert '{"degrees": 30}' in result
    assert result.startswith("<data ")
    assert (await service.client.get(f"/api/runs/{run_id}/report")).text == "It is sunny in Rome."


async def test_members_are_offered_the_functions_and_the_others_know_of_them(service, model):
    await start(service)
    shown = {one["messages"][0]["content"].split(".")[0]: one for one in model.requests}
    coordinator, member = shown["You are the coordinator of a team of agents"], model.requests[-1]
    assert "get_weather: Tells the weather." in coordinator["messages"][0]["content"]
    [offered] = [one["function"] for one in member["tools"] if one["function"]["name"] == "get_weather"]
    assert offered["parameters"] == LOCATION
    assert "You have no tools" not in member["messages"][0]["content"]


async def test_the_planner_knows_of_the_functions(service, model):
    model.reset(
        {**ASKS, "coordinator": [call("handoff_to_planner")], "planner": [reply(json.dumps(plan(STEP)))]}
    )
    _, events = await start(service)
    assert status(events) == "interrupted"
    [planner] = [one for one in model.requests if "You are the planner" in json.dumps(one)]
    assert "get_weather: Tells the weather." in planner["messages"][0]["content"]


async def test_a_call_whose_arguments_do_not_fit_goes_back_to_the_model(service, model):
    wrong, fitting = calls({"location": 7}), calls({"location": "Rome"})
    model.reset({**ASKS, "researcher": [wrong, fitting, reply("It is sunny.")]})
    _, events = await start(service)
    assert len(data(events, "interrupt")) == 1
    [result] = results(model)
    assert "location" in result and "string" in result


async def test_the_calls_of_one_answer_are_asked_together_and_in_order(service, model):
    places = ["Rome", "Oslo", "Lima"]
    model.reset({**ASKS, "researcher": [calls(*({"location": one} for one in places)), reply("Done.")]})
    run_id, events = await start(service)
    pauses = data(events, "interrupt")
    assert [one["payload"]["client_call"]["arguments"]["location"] for one in pauses] == places
    for pause in reversed(pauses):
        place = pause["payload"]["client_call"]["arguments"]["location"]
        events = await answer(service, run_id, f"{place}: warm", pause["interrupt_id"])
    assert status(events) == "completed"
    assert [place in result for place, result in zip(places, results(model), strict=True)] == [True] * 3


async def test_calls_that_a_model_names_alike_have_results_of_their_own(service, model):
    places = ["Rome", "Oslo", "Lima"]
    alike = [{"name": "get_weather", "arguments": {"location": one}, "id": "call_0"} for one in places]
    replies = [{"tool_calls": alike[:2]}, {"tool_calls": alike[2:]}, reply("Done.")]
    model.reset({**ASKS, "researcher": replies})
    run_id, events = await start(service)
    asked = list[str]()
    for place in places:
        pause = next(one for one in data(events, "interrupt") if place in str(one["payload"]))
        asked.append(pause["payload"]["client_call"]["id"])
        newest = await answer(service, run_id, f"{place}: warm", pause["interrupt_id"])
        events = [*events, *newest]
        if place == places[-1]:
            assert status(newest) == "completed"
    assert len({*asked}) == 3
    assert [place in result for place, result in zip(places, results(model), strict=True)] == [True] * 3


async def test_steps_at_the_same_time_ask_at_the_same_time(service, model):
    steps = [{**step("researcher", one), "needs": []} for one in ("Rome", "Oslo")]
    asked = [{**calls({"location": one}), "about": f"Your step: {one}"} for one in ("Rome", "Oslo")]
    model.reset(
        {
            "by_history": True,
            "coordinator": [call("handoff_to_planner")],
            "planner": [reply(json.dumps(plan(*steps, step("reporter", "Report"))))],
            "researcher": [*asked, reply("Warm.")],
            "reporter": [reply("# Report")],
        }
    )
    run_id, events = await start(service)
    pauses = data(events, "interrupt")
    assert len({one["payload"]["client_call"]["id"] for one in pauses}) == 2
    for pause in pauses:
        events = await answer(service, run_id, "warm", pause["interrupt_id"])
    assert status(events) == "completed"


async def test_an_agent_that_answers_alone_calls_them_too(model, tmp_path):
    model.reset({**ASKS, "manus": ASKS["researcher"]})
    members = ["researcher", "reporter", "manus"]
    async with open_service(model.base_url, tmp_path, team={"members": members}) as it:
        run_id, events = await start(it, agent="manus")
        assert status(events) == "interrupted"
        assert status(await answer(it, run_id, "sunny")) == "completed"


async def test_the_next_message_of_the_conversation_is_the_result(service, model):
    thread = await service.thread()
    run_id, _ = await start(service, thread_id=thread)
    answered = await service.client.post(
        f"/api/threads/{thread}/runs", json={"input": "30 degrees", "client_tools": [WEATHER]}
    )
    assert answered.json()["run_id"] == run_id
    assert answered.headers["x-maniple-not-used"] == "client_tools"
    await service.client.get(f"/api/runs/{run_id}/events")
    assert "30 degrees" in results(model)[0]


WRONG: dict[str, list[dict[str, Any]]] = {
    "a name that models refuse": [{**WEATHER, "name": "get weather"}],
    "a name of the team's": [{**WEATHER, "name": "python_repl_tool"}],
    "a name of the coordinator's": [{**WEATHER, "name": "handoff_to_planner"}],
    "the same name twice": [WEATHER, {**WEATHER, "description": "Another one."}],
    "a schema of a list": [{**WEATHER, "parameters": {"type": "array"}}],
    "no schema": [{**WEATHER, "parameters": {"type": "object", "properties": {"a": {"type": "text"}}}}],
    "a schema without end": [{**WEATHER, "parameters": {**LOCATION, "description": "a" * 40_000}}],
    "too many": [{**WEATHER, "name": f"f{number}"} for number in range(129)],
    "too much together": [
        {"name": f"f{number}", "description": "a" * 9_000, "parameters": {}} for number in range(25)
    ],
}


@pytest.mark.parametrize("case", WRONG)
async def test_functions_that_cannot_be_offered_are_refused_by_place(service, model, case):
    thread = await service.thread()
    for path, body in (
        (f"/api/threads/{thread}/runs", {"input": "Hi"}),
        ("/api/chat/stream", {"messages": [{"role": "user", "content": "Hi"}]}),
    ):
        refused = await service.client.post(path, json={**body, "client_tools": WRONG[case]})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
        assert refused.json()["detail"][0]["loc"][:2] == ["body", "client_tools"]
    assert model.requests == []


async def test_unknown_keys_of_functions_are_named(service, model):
    strict = {**WEATHER, "strict": True, "a b": 1}
    body = {"input": "Is it sunny?", "client_tools": [WEATHER, {**strict, "name": "other"}]}
    thread = await service.thread()
    started = await service.client.post(f"/api/threads/{thread}/runs", json=body)
    assert started.headers["x-maniple-not-used"] == "client_tools.1.strict, client_tools.1.a%20b"
    await service.events_of(started.json()["run_id"])
    assert '"strict": true' not in json.dumps(model.requests).lower()


async def test_a_small_model_that_calls_nothing_is_no_silent_no(model, tmp_path):
    basic = {"model": "scripted", "base_url": model.base_url, "profile": "compact"}
    async with open_service(model.base_url, tmp_path, models={"basic": basic}) as it:
        body = {"input": "Hi", "client_tools": [WEATHER]}
        refused = await it.client.post(f"/api/threads/{await it.thread()}/runs", json=body)
    assert refused.status_code == 422

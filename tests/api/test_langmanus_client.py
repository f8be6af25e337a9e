"""What a LangManus client receives, and how it continues: it sends back the returned history."""

import json
from itertools import pairwise
from typing import Any

import httpx
import pytest

from maniple.api.app import LANGMANUS_ORIGIN, create_app
from maniple.events import VIEW_NAMES, ChatMessage, RunGap, ViewName, history_digest
from maniple.events.views import describe_gaps
from tests.api.in_process import InProcessService, numbered, settings_of
from tests.grammar import Client
from tests.openai_server import SIMPLE, call, reply
from tests.runs.killing import crawling
from tests.serving import Frame
from tests.team import data, joined_text, plan, status, step

pytestmark = pytest.mark.anyio
FIRST = {"role": "user", "content": "1+3=?"}
SECOND = {"role": "user", "content": "Now double it."}


async def say(
    it: InProcessService,
    *messages: Any,
    headers: dict[str, str] | None = None,
    view: ViewName = "langmanus",
    **body: Any,
) -> list[Frame]:
    """Send a conversation as the client does: it adds fields of its own, and knows no thread."""
    sent = [{**one, "id": "from the client", "type": "text"} for one in messages]
    path = f"/api/chat/stream?view={view}"
    response = await it.client.post(path, json={"messages": sent, **body}, headers=headers)
    assert response.status_code == 200, response.text
    frames = [frame for _, frame in numbered(response.text)]
    if view == "langmanus":
        Client().read(frames)
    return frames


def history(frames: list[Frame]) -> list[dict[str, Any]]:
    """Return what the client keeps: after a workflow the messages of its end."""
    return (data(frames, "end_of_workflow") or data(frames, "final_session_state"))[0]["messages"]


def thread_of(frames: list[Frame]) -> str:
    return data(frames, "run")[0]["thread_id"]


def run_of(frames: list[Frame]) -> str:
    return data(frames, "run")[0]["run_id"]


async def test_an_approval_is_requested_as_text_and_answered_by_the_history(asking, site):
    waiting = await say(asking, {"role": "user", "content": "Look there. #run=words"})
    assert status(waiting) == "interrupted"
    question = history(waiting)[-1]
    assert question["role"] == "assistant"
    assert joined_text(waiting).endswith(question["content"])
    assert all(word in question["content"] for word in ("crawl_tool", f"{site.url}/words", "`approve`"))
    done = await say(asking, *history(waiting), {"role": "user", "content": "approve"})
    assert (run_of(done), status(done)) == (run_of(waiting), "completed")
    assert site.hits["/words"] == 1


@pytest.mark.parametrize("others", [["coder", "reporter"], []])
async def test_a_stale_member_of_the_client_is_left_out_and_named(
    it: InProcessService, others: list[str], model
):
    members = ["chef", *others, "chef", "köchin"]
    path, body = "/api/chat/stream", {"messages": [FIRST], "team_members": members}
    response = await it.client.post(path, json=body)
    assert response.headers["x-maniple-not-used"] == "team_members.chef, team_members.k%C3%B6chin"
    blocks = [one.split("\n")[-2:] for one in response.text.split("\n\n") if "event: " in one]
    frames = [(name[7:], json.loads(given[6:])) for name, given in blocks]
    Client().read(frames)
    assert frames[0][0] == "run"
    assert status(frames) == "completed"
    texts = joined_text(frames)
    assert texts.index("`chef`, `köchin`") < texts.index("4")
    options = (await it.service.engine.status(run_of(frames))).request
    assert json.loads(options)["options"]["team_members"] == others
    # What follows the run later sees the run alone.
    replay = await it.client.get(f"/api/runs/{run_of(frames)}/events?view=langmanus")
    assert "chef" not in joined_text([frame for _, frame in numbered(replay.text)])


async def test_a_history_without_the_words_of_a_question_answers_it_too(asking, site):
    waiting = await say(asking, {"role": "user", "content": "Look there. #run=live"}, view="live")
    assert data(waiting, "interrupt")
    assert history(waiting)[-1]["role"] == "user", "the live view does not put the question into words"
    done = await say(asking, *history(waiting), {"role": "user", "content": "approve"}, view="live")
    assert (run_of(done), status(done)) == (run_of(waiting), "completed")
    assert site.hits["/live"] == 1


async def test_the_text_of_a_question_distinguishes_threads_with_one_history(asking, asking_model, site):
    asked = {"role": "user", "content": "Look there."}
    waiting: list[list[Frame]] = []
    for name in ("first", "second"):
        asking_model.reset({**crawling(site), "researcher": [call("crawl_tool", url=f"{site.url}/{name}")]})
        waiting.append(await say(asking, asked))
    first, second = waiting
    assert history(first)[:-1] == history(second)[:-1]
    rejected = await say(asking, *history(first), {"role": "user", "content": "no"})
    assert run_of(rejected) == run_of(first)


async def test_the_returned_history_continues_its_thread(it: InProcessService):
    first = await say(it, FIRST)
    second = await say(it, *history(first), SECOND)
    third = await say(it, *history(second), FIRST)
    assert len({thread_of(first), thread_of(second), thread_of(third)}) == 1
    assert len({run_of(first), run_of(second), run_of(third)}) == 3
    assert history(third)[: len(history(second))] == history(second)


async def test_small_talk_is_continued_too(it: InProcessService, model):
    model.reset({**SIMPLE, "coordinator": [reply("Hello!")]})
    first = await say(it, {"role": "user", "content": [{"type": "text", "text": "Hi"}]})
    second = await say(it, *history(first), SECOND)
    assert thread_of(second) == thread_of(first)


async def test_another_history_begins_a_thread(it: InProcessService):
    first = await say(it, FIRST)
    changed = [*history(first)[:-1], {"role": "user", "content": "# Another report"}]
    for messages in (changed, history(first)[:-1]):
        assert thread_of(await say(it, *messages, SECOND)) != thread_of(first)


async def test_of_two_threads_with_one_history_each_is_continued_once_the_newest_first(
    it: InProcessService, model
):
    model.reset({**SIMPLE, "coordinator": [reply("Hello!")]})
    older, newer = [await say(it, FIRST) for _ in range(2)]
    assert history(older) == history(newer)
    continued = [thread_of(await say(it, *history(older), SECOND)) for _ in range(3)]
    assert continued[:2] == [thread_of(newer), thread_of(older)]
    assert continued[2] not in continued[:2]


async def test_the_history_of_another_key_is_not_found(it: InProcessService):
    mine, theirs = await it.key("mine"), await it.key("theirs")
    first = await say(it, FIRST, headers=mine)
    other = await say(it, *history(first), SECOND, headers=theirs)
    again = await say(it, *history(first), SECOND, headers=mine)
    assert thread_of(again) == thread_of(first)
    assert (await it.client.get(f"/api/runs/{run_of(other)}", headers=mine)).status_code == 404


async def test_a_refused_request_does_not_lose_the_thread(it: InProcessService):
    first = await say(it, FIRST)
    await it.service.engine.drain()
    refused = await it.client.post("/api/chat/stream", json={"messages": [*history(first), SECOND]})
    assert refused.status_code == 503
    digest = history_digest(ChatMessage(**one) for one in history(first))
    found = await it.service.store.threads.take_history("", digest)
    assert found and found.name == thread_of(first)


async def test_a_client_that_has_left_goes_on_with_what_it_had(it: InProcessService, model):
    first = await say(it, FIRST)
    thread = thread_of(first)
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    run = await it.run(thread_id=thread, messages=[*history(first), SECOND])
    cancelled = await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    assert cancelled.json()["status"] == "cancelled"
    model.reset(SIMPLE)
    assert thread_of(await say(it, *history(first), FIRST)) == thread


async def test_a_failed_run_reports_it_as_text_and_can_be_continued(it: InProcessService, model):
    model.reset({**SIMPLE, "planner": [{"status": 500}]})
    failed = await say(it, FIRST)
    assert status(failed) == "failed"
    assert data(failed, "start_of_agent")[-1]["agent_name"] == "reporter"
    assert data(failed, "error")[0]["message"] in joined_text(failed)
    model.reset(SIMPLE)
    again = await say(it, *history(failed), FIRST)
    assert (thread_of(again), status(again)) == (thread_of(failed), "completed")


async def test_missing_parts_are_listed_at_the_end_of_the_report(it: InProcessService, model):
    model.reset({**SIMPLE, "coder": [{"status": 500}]})
    frames = await say(it, FIRST)
    [gap] = data(frames, "run_status")[0]["gaps"]
    assert data(frames, "start_of_agent")[-1]["agent_name"] == "reporter"
    assert joined_text(frames).endswith(describe_gaps([RunGap(**gap)]))
    assert describe_gaps([RunGap(**gap)]) not in str(history(frames)), "it is no part of the conversation"


def concurrent() -> dict[str, Any]:
    """A plan of which two steps can be done at the same time, each of them slowly."""
    steps = [{**step("researcher", title), "needs": []} for title in ("A", "B")]
    slow = reply("one two three four five six", delay_seconds=0.05)
    return {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(*steps, step("reporter"))))],
        "researcher": [slow],
    }


async def shown(it: InProcessService, run_id: str, view: str, after: int = 0) -> list[tuple[int, Frame]]:
    response = await it.client.get(f"/api/runs/{run_id}/events?view={view}&timed=true&after={after}")
    assert response.status_code == 200
    return numbered(response.text)


async def test_concurrent_steps_interleave_in_the_live_view_alone(it: InProcessService, model):
    model.reset(concurrent())
    old = await say(it, FIRST)
    live = [frame for _, frame in await shown(it, run_of(old), "live")]
    pieces = [one for one in data(live, "message") if one.get("step_id") in (1, 2)]
    turns = [one["agent_id"] for one in pieces]
    assert len(set(turns)) == 2
    changes = sum(before != after for before, after in pairwise(turns))
    assert changes > 1, "one did not wait for the other"
    times = [content["at"] for name, content in live if name in ("message", "start_of_agent", "end_of_agent")]
    assert times == sorted(times)
    assert [one["agent_name"] for one in data(old, "start_of_agent")].count("researcher") == 2


@pytest.mark.parametrize("view", VIEW_NAMES)
async def test_each_view_resumes_at_every_position(it: InProcessService, model, view):
    model.reset(concurrent())
    response = await it.client.post(f"/api/chat/stream?view={view}", json={"messages": [FIRST]})
    live = numbered(response.text)
    run_id = run_of([frame for _, frame in live])
    whole = await shown(it, run_id, view)
    assert [(number, name) for number, (name, _) in whole] == [(number, name) for number, (name, _) in live]
    assert [number for number, _ in whole] == list(range(1, len(whole) + 1))
    for after in range(len(whole) + 1):
        assert await shown(it, run_id, view, after) == whole[after:]


async def test_an_unknown_view_is_refused_with_the_known_ones(it: InProcessService):
    run_id = run_of(await say(it, FIRST))
    for response in (
        await it.client.get(f"/api/runs/{run_id}/events?view=upside_down"),
        await it.client.post("/api/chat/stream?view=upside_down", json={"messages": [FIRST]}),
    ):
        assert response.status_code == 422
        assert all(name in response.text for name in VIEW_NAMES)


async def test_an_answered_run_is_followed_from_where_it_went_on_in_each_view(asking, site):
    waiting = await say(asking, {"role": "user", "content": "Look there. #run=place"})
    run_id = run_of(waiting)
    answered = await asking.client.post(f"/api/runs/{run_id}/resume", json={"answer": "approve"})
    address = answered.headers["location"]
    rest = numbered((await asking.client.get(address)).text)
    assert rest[0][1][0] == "run"
    assert rest[0][0] == len(waiting) + 1
    assert status([frame for _, frame in rest]) == "completed"


async def preflight(origin: str, tmp_path, **server: Any) -> str | None:
    app = create_app(settings_of("http://127.0.0.1:1/v1", tmp_path, server=server))
    headers = {"origin": origin, "access-control-request-method": "POST"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        response = await client.options("/api/chat/stream", headers=headers)
    return response.headers.get("access-control-allow-origin")


async def test_the_page_of_the_client_may_call_a_service_that_only_this_machine_reaches(tmp_path):
    assert await preflight(LANGMANUS_ORIGIN, tmp_path) == LANGMANUS_ORIGIN
    assert await preflight("http://localhost:3001", tmp_path) is None
    public = {"host": "0.0.0.0", "insecure": True, "cors_origins": ["http://desk.test"]}
    assert await preflight(LANGMANUS_ORIGIN, tmp_path, **public) is None
    assert await preflight("http://desk.test", tmp_path, **public) == "http://desk.test"

"""A tool that waits for approval, on a thread where the next message is the answer."""

import pytest

from tests.api.in_process import InProcessService, numbered
from tests.grammar import Client
from tests.openai_server import reply
from tests.runs.killing import Site, crawling
from tests.team import data, status

pytestmark = pytest.mark.anyio
NOT_THE_WORD = [
    "yes, but not this one",
    "Approve? No!",
    "do not approve",
    "approve the other one",
    "ja, aber nicht diese hier",
    "sí, pero esta no",
    "oui, mais pas celle-ci",
    "what does it read there?",
    "好的，但不是这个",
    "可以，先别运行",
    "はい、でもこれは違います",
    "да, но не это",
    "نعم، لكن ليس هذا",
]
THE_WORD = ["approve", " Approve\n", "ACCEPT", "yes", "Y", "ok", "Approve.", "Yes, please.", "好"]


async def events_of_chat(it: InProcessService, thread: str, text: str):
    """Say something on a thread as the old client does."""
    body = {"messages": [{"role": "user", "content": text}], "thread_id": thread}
    response = await it.client.post("/api/chat/stream", json=body)
    assert response.status_code == 200, response.text
    frames = [frame for _, frame in numbered(response.text)]
    Client().read(frames)
    return frames


async def events_of_run(it: InProcessService, thread: str, text: str):
    """Say something on a thread by starting a run there."""
    read = (await it.get(f"/api/threads/{thread}"))["runs"]
    before = numbered((await it.client.get(f"/api/runs/{read[0]['run_id']}/events")).text) if read else []
    response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": text})
    assert response.status_code == 202, response.text
    return await it.events_of(response.json()["run_id"], len(before))


WAYS = [events_of_chat, events_of_run]


@pytest.mark.parametrize(
    ("say", "unclear"), [(events_of_chat, NOT_THE_WORD), (events_of_run, NOT_THE_WORD[:5])]
)
async def test_a_message_that_decides_nothing_is_asked_again(
    asking: InProcessService, asking_model, site: Site, say, unclear
):
    for number, words in enumerate(unclear):
        thread = await asking.thread()
        waiting = await say(asking, thread, f"Look there. #run=no{number}")
        [pause] = data(waiting, "interrupt")
        assert (pause["kind"], pause["payload"]["tool_name"]) == ("tool_approval", "crawl_tool")
        frames = await say(asking, thread, words)
        assert status(frames) == "interrupted"
        [again] = data(frames, "interrupt")
        assert again["payload"]["unclear"]
        assert again["payload"]["tool_input"] == pause["payload"]["tool_input"]
        rejection = "No, there is no need."
        assert status(await say(asking, thread, rejection)) == "completed"
        sent = [one["content"] for one in asking_model.requests[-2]["messages"] if one["role"] == "tool"]
        assert [one.endswith(f": {rejection}") for one in sent] == [True]
    assert site.hits == {}


@pytest.mark.parametrize("say", WAYS)
async def test_words_of_acceptance_let_it_run_once(asking: InProcessService, site: Site, say):
    for number, words in enumerate(THE_WORD):
        thread = await asking.thread()
        assert status(await say(asking, thread, f"Look there. #run=yes{number}")) == "interrupted"
        assert status(await say(asking, thread, words)) == "completed"
        assert site.hits[f"/yes{number}"] == 1
    assert site.hits.total() == len(THE_WORD)


@pytest.mark.parametrize("say", WAYS)
async def test_an_approval_is_for_the_first_of_two_waiting_calls(
    asking: InProcessService, asking_model, site, say
):
    urls = [f"{site.url}/{{run}}-{letter}" for letter in "ab"]
    both = [{"name": "crawl_tool", "arguments": {"url": url}} for url in urls]
    asking_model.reset({**crawling(site), "researcher": [{"tool_calls": both}, reply("found")]})
    for number in range(2):
        thread = await asking.thread()
        waiting = data(await say(asking, thread, f"Look there. #run=two{number}"), "interrupt")
        first, second = [one["payload"]["tool_input"]["url"].removeprefix(site.url) for one in waiting]
        frames = await say(asking, thread, "approve")
        [left] = data(frames, "interrupt")
        assert left["payload"]["tool_input"]["url"].endswith(second)
        assert (site.hits[first], site.hits[second]) == (1, 0)
        assert status(await say(asking, thread, "no")) == "completed"
        assert site.hits[second] == 0


async def test_the_calls_of_one_answer_ask_in_its_order(asking: InProcessService, asking_model, site: Site):
    urls = [f"{site.url}/{{run}}-{letter}" for letter in "ebdac"]
    calls = [{"name": "crawl_tool", "arguments": {"url": url}} for url in urls]
    asking_model.reset({**crawling(site), "researcher": [{"tool_calls": calls}, reply("found")]})
    thread = await asking.thread()
    frames = await events_of_chat(asking, thread, "Look there. #run=order")
    expected = [f"/order-{letter}" for letter in "ebdac"]
    for number in range(len(expected)):
        asked = [
            one["payload"]["tool_input"]["url"].removeprefix(site.url) for one in data(frames, "interrupt")
        ]
        assert asked == expected[number:]
        assert site.hits.total() == number
        frames = await events_of_chat(asking, thread, "approve")
        assert site.hits[expected[number]] == 1
    assert status(frames) == "completed"

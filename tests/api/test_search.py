"""Questions and answers are searched over HTTP."""

import pytest

from maniple.store import open_store
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
ANSWER = "Solar power grew by 24 percent, faster than wind."


@pytest.fixture
async def searched(tmp_path):
    with serving({"coordinator": [reply(ANSWER)], "by_history": True}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            yield it


async def ask(it: InProcessService, text: str) -> dict[str, str]:
    thread = await it.thread()
    response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": text})
    await it.events_of(response.json()["run_id"])
    return response.json()


async def hits(it: InProcessService, query: str) -> list[dict]:
    return (await it.get(f"/api/search?q={query}"))["hits"]


async def test_an_answer_is_found_as_soon_as_its_run_has_ended_and_gone_with_its_conversation(
    searched: InProcessService,
):
    run = await ask(searched, "Compare the growth.")
    while (await searched.get(f"/api/runs/{run['run_id']}"))["ended_at"] is None:
        continue
    [hit] = await hits(searched, "wind%20percent")
    assert (hit["run_id"], hit["thread_id"]) == (run["run_id"], run["thread_id"])
    assert hit["in_answer"] and hit["question"] == "Compare the growth."
    assert [hit["passage"][start:end] for start, end in hit["marks"]] == ["percent", "wind"]
    [hit] = await hits(searched, "compar")
    assert not hit["in_answer"]
    assert await hits(searched, "") == [] and await hits(searched, "nuclear") == []
    await searched.client.delete(f"/api/threads/{run['thread_id']}")
    assert await hits(searched, "wind") == []


async def test_a_run_of_before_the_search_is_indexed_while_the_service_works(tmp_path):
    with serving({"coordinator": [reply(ANSWER)], "by_history": True}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await ask(it, "Compare the growth.")
        path = tmp_path / "data/maniple.db"
        async with open_store(path, tmp_path / "data/artifacts", server=False) as store:
            await store._database.execute("DELETE FROM run_texts")
        async with open_service(model.base_url, tmp_path) as it:
            for _ in range(1_000):
                if found := await hits(it, "wind"):
                    break
            assert [hit["run_id"] for hit in found] == [run["run_id"]]

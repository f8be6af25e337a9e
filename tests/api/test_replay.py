"""A run as a file that plays it, over HTTP."""

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.api.in_process import InProcessService
from tests.openai_server import SIMPLE, reply

pytestmark = pytest.mark.anyio


def lines_in(html: str, block: str) -> list[dict[str, Any]]:
    """Return what the lines of a data block of a file say."""
    text = html.partition(f'id="{block}">\n')[2].partition("</script>")[0]
    return [json.loads(line) for line in text.splitlines()]


async def test_a_run_is_had_as_a_file_that_is_saved_and_runs_nothing_here(it: InProcessService):
    run = await it.run()
    told = await it.events_of(run["run_id"])
    response = await it.client.get(f"/api/runs/{run['run_id']}/replay")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    disposition, _, name = response.headers["content-disposition"].partition("; filename*=utf-8''")
    assert (disposition, unquote(name)) == ("attachment", "1+3=?.html")
    assert response.headers["content-security-policy"] == "sandbox"
    assert response.headers["cache-control"] == "private, no-store"
    assert [event["type"] for event in lines_in(response.text, "events")] == [name for name, _ in told]


async def test_the_file_has_the_usage_of_each_member(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    path = f"/api/runs/{run['run_id']}"
    file = (await it.client.get(f"{path}/replay")).text
    (content,) = [one["content"] for one in lines_in(file, "enclosures") if one["path"] == path]
    stands = json.loads(base64.b64decode(content.partition(",")[2]))
    assert stands == {"by_agent": (await it.get(path))["by_agent"]}
    assert [share["agent_name"] for share in stands["by_agent"]] == [
        "coordinator",
        "planner",
        "coder",
        "reporter",
    ]


async def test_the_file_is_for_the_key_whose_run_it_was(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    path = f"/api/runs/{run['run_id']}/replay"
    file = await it.client.get(path, headers=mine)
    assert file.status_code == 200
    assert mine["x-api-key"] not in file.text
    assert (await it.client.get(path, headers=other)).status_code == 404
    assert (await it.client.get(path)).status_code == 401


async def test_the_file_holds_one_run_of_its_conversation(it: InProcessService, model):
    thread = await it.thread()
    model.reset({**SIMPLE, "coordinator": [reply("The word is Ultramarine.")]})
    first = await it.run(thread_id=thread, messages=[{"role": "user", "content": "Say a secret word"}])
    await it.events_of(first["run_id"])
    model.reset(SIMPLE)
    second = await it.run(thread_id=thread)
    await it.events_of(second["run_id"])
    events = await it.client.get(f"/api/runs/{second['run_id']}/events")
    assert "Ultramarine" in events.text and "secret word" in events.text
    file = await it.client.get(f"/api/runs/{second['run_id']}/replay")
    assert "Ultramarine" not in file.text and "secret word" not in file.text

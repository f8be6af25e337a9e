"""What a run has read, over HTTP."""

import pytest

from maniple.evidence import NotedFinding
from tests.api.in_process import InProcessService

pytestmark = pytest.mark.anyio


async def test_the_sources_of_a_run_are_read_by_its_key_alone(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    run_id = (await it.run(mine))["run_id"]
    path = f"/api/runs/{run_id}/sources"
    assert await it.get(path, mine) == {"sources": [], "unread": [], "findings": []}
    evidence = it.service.store.evidence(run_id)
    source = await evidence.add("https://e.test/", "A", "result", "text", asked="https://sho.rt/1")
    assert await it.get(path, mine) == {
        "sources": [
            {
                "number": 1,
                "url": "https://e.test/",
                "title": "A",
                "kind": "result",
                "retrieved_at": source.retrieved_at,
                "sha256": source.sha256,
                "also": ["https://sho.rt/1"],
                "published": "",
                "author": "",
                "publisher": "",
            }
        ],
        "unread": [],
        "findings": [],
    }
    await evidence.add_unread("https://e.test/2", "It answered 503.")
    (page,) = (await it.get(path, mine))["unread"]
    assert (page["url"], page["reason"]) == ("https://e.test/2", "It answered 503.")
    await evidence.add_finding(NotedFinding(1, "It is a text.", "text", source.sha256, 0, 4))
    (finding,) = (await it.get(path, mine))["findings"]
    assert finding.pop("noted_at") > 0
    assert finding == {
        "source": 1,
        "statement": "It is a text.",
        "quote": "text",
        "sha256": source.sha256,
        "start": 0,
        "end": 4,
        "inherited": False,
    }
    for headers in (other, {}):
        response = await it.client.get(path, headers=headers)
        assert response.status_code == (404 if headers else 401)
    assert (await it.client.get("/api/runs/nowhere/sources", headers=mine)).status_code == 404

"""The claims of a run's report, over HTTP, also after a restart."""

import json

import pytest

from tests.api.in_process import InProcessService, open_service
from tests.crawler.web import Reply, open_site
from tests.openai_server import SIMPLE, call, reply
from tests.team import plan, step

pytestmark = pytest.mark.anyio
PAGE = """<html><head><title>The bridge</title></head><body><article><h1>The bridge</h1>
<p>The bridge was opened in 1932 by the king himself, and nobody has painted it since that day.</p>
<p>It is 503 metres long and has two towers of stone, which were built before the first war.</p>
</article></body></html>"""
RIGHT = "The bridge was opened in 1932 [1]."
WRONG = "It is 7,318 metres long [1]."


async def run_report(it: InProcessService, model, site_url: str, headers: dict[str, str]) -> str:
    """Make a report with a right and a wrong claim, which is not repaired; return the run's id."""
    model.reset(
        {
            **SIMPLE,
            "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
            "researcher": [call("crawl_tool", url=f"{site_url}/bridge"), reply("Opened in 1932 [1].")],
            "reporter": [reply(f"# The bridge\n\n{RIGHT}\n\n{WRONG}\n"), reply("no passage")],
        }
    )
    run_id = (await it.run(headers))["run_id"]
    await it.events_of(run_id, headers=headers)
    return run_id


async def test_the_claims_of_a_report_are_read_with_their_passages_also_after_a_restart(model, tmp_path):
    fetch = {"allow_private": ["127.0.0.0/8"]}
    async with open_site({"/bridge": Reply(PAGE)}) as site:
        async with open_service(model.base_url, tmp_path, fetch=fetch) as it:
            mine, other = await it.key("mine"), await it.key("other")
            run_id = await run_report(it, model, site.url, mine)
            path = f"/api/runs/{run_id}/claims"
            before = await it.get(path, mine)
            assert [(await it.client.get(path, headers=one)).status_code for one in (other, {})] == [404, 401]
        async with open_service(model.base_url, tmp_path, fetch=fetch) as it:
            read = await it.get(path, mine)
            wrong = await it.get(f"{path}?verdict=contradicted&verdict=absent", mine)
            refused = await it.client.get(f"{path}?verdict=right", headers=mine)
    assert read == before
    right, marked = read["claims"]
    assert (right["verdict"], right["mark"]) == ("supported", None)
    assert (right["passage"]["source"], "1932" in right["passage"]["text"]) == (1, True)
    assert (marked["mark"], marked["text"]) == (1, "It is 7,318 metres long.")
    assert (wrong["claims"], wrong["counts"]) == ([marked], read["counts"])
    assert (read["counts"]["supported"], read["unlisted"]) == (1, 0)
    assert read["score"].startswith("*1 of 2 claims")
    assert refused.status_code == 422


async def test_an_answer_without_claims_has_no_counts_and_one_that_is_not_there_is_refused(
    it: InProcessService, model
):
    model.reset({**SIMPLE, "coordinator": [reply("Hello!")]})
    run_id = (await it.run())["run_id"]
    await it.events_of(run_id)
    assert (await it.get(f"/api/runs/{run_id}/claims"))["counts"] is None
    model.reset({**SIMPLE, "planner": [{"hang": True}]})
    run_id = (await it.run())["run_id"]
    refused = await it.client.get(f"/api/runs/{run_id}/claims")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_finished")
    await it.client.post(f"/api/runs/{run_id}/cancel")
    refused = await it.client.get(f"/api/runs/{run_id}/claims")
    assert (refused.status_code, refused.json()["code"]) == (404, "no_report")
    assert (await it.client.get("/api/runs/nowhere/claims")).status_code == 404


async def test_the_answer_of_a_member_that_works_alone_is_judged_but_not_changed(model, tmp_path):
    answer = "The bridge was opened in 1932 [1]. It is 7,318 metres long [1]."
    async with open_site({"/bridge": Reply(PAGE)}) as site:
        model.reset({"manus": [call("crawl_tool", url=f"{site.url}/bridge"), reply(answer)]})
        fetch, team = {"allow_private": ["127.0.0.0/8"]}, {"members": ["researcher", "manus"]}
        async with open_service(model.base_url, tmp_path, fetch=fetch, team=team) as it:
            run_id = (await it.run(agent="manus"))["run_id"]
            frames = await it.events_of(run_id)
            read = await it.get(f"/api/runs/{run_id}/claims")
    assert frames[-1][1]["messages"][-1]["content"] == answer
    right, wrong = read["claims"]
    assert (right["verdict"], right["mark"]) == ("supported", None)
    assert (wrong["verdict"], wrong["mark"]) == ("absent", None)
    assert read["score"].startswith("*1 of 2 claims")
    assert [one["supported"] for name, one in frames if name == "claims"] == [1]

"""The page of a run, over HTTP: its replay file, shown instead of saved."""

import json
import re

import pytest

from tests.api.in_process import InProcessService
from tests.openai_server import SIMPLE

pytestmark = pytest.mark.anyio


def block(html: str, name: str) -> str:
    """Return the text of a data block of the page."""
    return html.partition(f'id="{name}">')[2].partition("</script>")[0]


async def test_every_run_has_a_page_of_its_own_under_a_strict_policy(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    response = await it.client.get(f"/api/runs/{run['run_id']}/page")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "content-disposition" not in response.headers
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "frame-ancestors 'none'" in policy
    assert policy.partition("; frame-ancestors")[0].replace("'", "&#x27;") in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "private, no-store"
    assert json.loads(block(response.text, "run"))["question"] == "1+3=?"
    paths = re.findall(r'"path": "([^"]+)"', block(response.text, "enclosures"))
    assert [path.rpartition("/")[2] for path in paths] == [run["run_id"], "body", "sources"]


async def test_it_is_the_file_that_is_shared(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    page = await it.client.get(f"/api/runs/{run['run_id']}/page")
    file = await it.client.get(f"/api/runs/{run['run_id']}/replay")
    assert file.headers["content-disposition"].startswith("attachment")
    assert page.text == file.text


async def test_a_run_that_waits_or_failed_has_one_too(it: InProcessService, model):
    waiting = await it.run(auto_accepted_plan=False)
    await it.events_of(waiting["run_id"])
    page = await it.client.get(f"/api/runs/{waiting['run_id']}/page")
    assert json.loads(block(page.text, "run"))["status"] == "interrupted"
    model.reset({**SIMPLE, "coordinator": [{"status": 400, "error": "no such <model>"}]})
    failed = await it.run()
    await it.events_of(failed["run_id"])
    page = await it.client.get(f"/api/runs/{failed['run_id']}/page")
    assert json.loads(block(page.text, "run"))["status"] == "failed"
    assert "no such \\u003cmodel>" in page.text and "no such <model>" not in page.text


async def test_the_page_is_for_the_key_whose_run_it_was(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    path = f"/api/runs/{run['run_id']}/page"
    assert (await it.client.get(path, headers=mine)).status_code == 200
    assert (await it.client.get(path, headers=other)).status_code == 404
    assert (await it.client.get(path)).status_code == 401

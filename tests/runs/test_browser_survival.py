"""A server that is killed during the browser's work continues it after a restart."""

import json

import pytest

from tests.agents.browsing.shop import done, shop_script, use
from tests.grammar import Client
from tests.openai_server import serving
from tests.runs.killing import Mortal, open_site
from tests.runs.test_survival import _begin, _told
from tests.serving import environment
from tests.team import data

pytestmark = [pytest.mark.anyio]
PAGES = 4


@pytest.mark.slow
async def test_the_steps_that_were_done_are_not_done_again_after_a_kill(tmp_path):
    async with open_site() as site:
        ways = [use("go_to_url", url=f"{site.url}/{n}") for n in range(PAGES)]
        with serving({**shop_script(*ways, done("seen all")), "by_history": True}) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
            async with Mortal(env, tmp_path) as server:
                async with server.client() as client:
                    run_id = await _begin(client, "r")
                await site.visited(3)
                await server.kill()
                before = dict(site.hits)
                await server.start()
                async with server.client() as client:
                    frames = await _told(client, run_id)
    assert Client().read(frames).status == "completed"
    *_, result = data(frames, "tool_call_result")
    assert json.loads(result["tool_result"])["result_content"] == "seen all"
    assert {path for path in site.hits if path != "/favicon.ico"} == {f"/{n}" for n in range(PAGES)}
    # Of what was on record nothing was opened again; what was under way may have been.
    assert site.hits["/0"] == before["/0"] == 1
    assert site.hits["/1"] == before["/1"] == 1

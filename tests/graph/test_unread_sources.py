"""A step half of whose pages could not be read is a gap of its run, also if its member does not say so."""

import json

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.errors import FetchError
from maniple.tools.evidence import record_unread, source_line
from tests.openai_server import call, reply
from tests.team import data, plan, scripted_team, step

pytestmark = pytest.mark.anyio
READ = ("https://e.test/a", "https://e.test/b")
BROKEN = ("https://e.test/gone", "https://e.test/wall")


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    if url in BROKEN:
        await record_unread(url, "It answered 503.")
        raise FetchError(f"{url} answered 503.")
    return f"{await source_line(url, 'Tea', 'Tea costs 3 euros.')}\nTea costs 3 euros."


async def run_with(*urls: str, locale: str = "en", report: str = "# Tea\n\nTea costs 3 euros [1]."):
    """Return gaps, answer and calls by role of a run whose researcher tries these pages."""
    script = {
        "coordinator": [call("handoff_to_planner", locale=locale)],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [*(call("crawl_tool", url=url) for url in urls), reply("3 euros [1].")],
        "reporter": [reply(report)],
    }
    async with scripted_team(script, toolbox=Offer({"researcher": [crawl_tool]})) as it:
        frames = await it.run("What does tea cost?")
        calls = dict(it.server.stats["by_role"])
    gaps = data(frames, "run_status")[-1].get("gaps") or []
    answer = data(frames, "end_of_workflow")[0]["messages"][-1]["content"]
    return gaps, answer, calls


@pytest.mark.parametrize(
    ("urls", "count"), [([READ[0], BROKEN[0]], "1 of 2"), ([READ[0], *BROKEN], "2 of 3")]
)
async def test_a_step_half_of_whose_pages_failed_is_a_gap(urls, count):
    gaps, answer, calls = await run_with(*urls)
    (gap,) = gaps
    assert count in gap["reason"] and BROKEN[0] in gap["reason"]
    assert count in answer
    assert calls.get("supervisor", 0) == 0


async def test_a_german_report_says_so_in_german():
    report = "# Tee\n\nDer Tee kostet nur 3 Euro, und das ist gut [1]."
    _, answer, _ = await run_with(READ[0], BROKEN[0], locale="de", report=report)
    assert "Es fehlt" in answer


@pytest.mark.parametrize("urls", [[], READ, [*READ, BROKEN[0]], [BROKEN[0], BROKEN[0], *READ]])
async def test_a_step_most_of_whose_pages_were_read_is_none(urls):
    gaps, _, _ = await run_with(*urls)
    assert gaps == []

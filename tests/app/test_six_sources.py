"""What a question over six sources costs: a search, six pages, a calculation and a report."""

import asyncio
import json

import httpx
import pytest

from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply, serving
from tests.serving import environment, server_process
from tests.team import plan, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
SOURCES = 6
MAX_CALLS = 8
MAX_PROMPT_TOKENS = 18_000


def page(number):
    rows = "".join(f"<tr><td>Shop {row}</td><td>{number}.{row:02}</td></tr>" for row in range(20))
    text = f"<p>{f'Tea in town {number} is sold by weight, and dearer in winter. ' * 20}</p>" * 5
    return Reply(f"<!doctype html><title>Town {number}</title><main>{text}<table>{rows}</table></main>")


@pytest.mark.slow
async def test_a_question_over_six_sources_takes_eight_calls_of_models(tmp_path):
    async with open_site({}) as site:
        urls = [f"{site.url}/town{number}" for number in range(SOURCES)]
        hits = [{"url": url, "title": f"Town {n}", "content": "Tea. " * 8} for n, url in enumerate(urls)]
        site.pages["/search"] = Reply(json.dumps({"query": "tea", "results": hits}), "application/json")
        site.pages |= {f"/town{number}": page(number) for number in range(SOURCES)}
        crawls = [{"name": "crawl_tool", "arguments": {"url": url}} for url in urls]
        steps = [step("researcher", "Find prices"), step("coder", "Compare them"), step("reporter")]
        cites = " ".join(f"Town {n}: {n} euros [{n + 1}]." for n in range(SOURCES))
        script = {
            "coordinator": [call("handoff_to_planner", locale="en")],
            "planner": [reply(json.dumps(plan(*steps)))],
            "researcher": [call("tavily_search", query="tea prices"), {"tool_calls": crawls}, reply(cites)],
            "coder": [call("python_repl_tool", code="print(sum(range(6)) / 6)"), reply("On average 2.5.")],
            "reporter": [reply(f"# Tea\n\n{cites}\n\nOn average 2.5 euros.")],
        }
        with serving(script) as model:
            settings = {
                "MANIPLE_FETCH__ALLOW_PRIVATE": "127.0.0.0/8",
                "MANIPLE_SEARCH__PROVIDERS": "searxng",
                "SEARXNG_URL": site.url,
            }

            def ask():
                with server_process(environment(model.base_url, tmp_path, **settings), tmp_path) as server:
                    body = {"messages": [{"role": "user", "content": "What does tea cost in six towns?"}]}
                    return httpx.post(f"{server.url}/api/chat/stream", json=body, timeout=60).text

            answer = await asyncio.to_thread(ask)
        read = {path for _, path, _ in site.requests if path.startswith("/town")}
    assert len(read) == SOURCES
    assert "On average 2.5 euros." in answer
    stats = model.stats
    assert stats["calls"] <= MAX_CALLS, stats["by_role"]
    assert stats["prompt_tokens"] <= MAX_PROMPT_TOKENS, stats

"""CPU and time of runs that work in the browser or search the web, beside a bare server with like tools."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any

from bench.load import BARE, TEAM, LoadResult, ServersUnderLoad, servers_under_load
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply

ROUNDS = 5
ACTIONS = 12
SEARCHES = 6
_FORM = Reply(
    "<!doctype html><title>Form</title><label>Name <input></label>"
    "<button onclick='out.value++'>Count</button><output id=out>0</output>"
    + "".join(f"<p>{'Some words of a paragraph. ' * 12}<a href=/{n}>Link {n}</a></p>" for n in range(40))
)
_ARTICLE = Reply(
    "<!doctype html><title>Bridges</title><nav>"
    + "".join(f"<a href=/m{n}>Menu {n}</a>" for n in range(40))
    + "</nav><main><h1>Bridges</h1>"
    + "".join(f"<p>{f'Bridge {n} is made of stone, and its arch is wide. ' * 8}</p>" for n in range(60))
    + "</main>"
)
_SETTINGS = {"MANIPLE_FETCH__ALLOW_PRIVATE": "127.0.0.0/8", "MANIPLE_FETCH__ROBOTS": "false"}


async def measure_browser(rounds: int = ROUNDS, actions: int = ACTIONS) -> dict[str, float]:
    """Return what one action costs with the look at the page and the model's call that belong to it."""
    async with open_site({"/": _FORM}) as site:
        scripts = {kind: _browser_script(kind, f"{site.url}/", actions) for kind in (TEAM, BARE)}
        async with _both(scripts, "browser", _SETTINGS) as servers:
            results = await _in_turn(servers, rounds)
    # The first one opens the page.
    return _figures("browser_step", results, actions + 1)


async def measure_search(rounds: int = ROUNDS, searches: int = SEARCHES) -> dict[str, float]:
    """Return what a run costs that searches and reads a page, several times."""
    async with open_site({}) as site:
        hits = [
            {"url": f"{site.url}/a{n}", "title": f"Bridge {n}", "content": "A bridge of stone. " * 8}
            for n in range(5)
        ]
        site.pages["/search"] = Reply(json.dumps({"query": "bridges", "results": hits}), "application/json")
        site.pages |= {f"/a{n}": _ARTICLE for n in range(searches)}
        script = _search_script(site.url, searches)
        settings = {**_SETTINGS, "MANIPLE_SEARCH__PROVIDERS": "searxng", "SEARXNG_URL": site.url}
        async with _both(dict.fromkeys((TEAM, BARE), script), "researcher", settings, site.url) as servers:
            results = await _in_turn(servers, rounds)
        read = sum(path.startswith("/a") for _, path, _ in site.requests)
    if read != 2 * (rounds + 1) * searches:
        raise RuntimeError(f"{read} pages were read: the runs did not do their work.")
    return _figures("search_run", results, 1)


def _browser_script(kind: str, url: str, actions: int) -> dict[str, Any]:
    def named(name: str) -> dict[str, str]:
        return {"index": f"index of {name}"} if kind == TEAM else {"control": name}

    steps = [
        call("browser_use", action="input_text", text=f"text {number}", **named("Name"))
        if number % 2
        else call("browser_use", action="click_element", **named("Count"))
        for number in range(actions)
    ]
    ending = call("terminate", status="success", result="Done.") if kind == TEAM else reply("Done.")
    opening = call("browser_use", action="go_to_url", url=url)
    return _script("browser", [opening, *steps, ending])


def _search_script(url: str, searches: int) -> dict[str, Any]:
    # The run's name keeps caches from answering.
    pairs = [
        (
            call("tavily_search", query=f"bridges {number} {{run}}"),
            call("crawl_tool", url=f"{url}/a{number}?run={{run}}"),
        )
        for number in range(searches)
    ]
    return _script(
        "researcher", [*(one for pair in pairs for one in pair), reply("Bridges are of stone. " * 20)]
    )


def _script(member: str, work: list[dict[str, Any]]) -> dict[str, Any]:
    steps = [
        {"agent_name": member, "title": "Work", "description": "Do it."},
        {"agent_name": "reporter", "title": "Report", "description": "Report it."},
    ]
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps({"thought": "", "title": "Work", "steps": steps}))],
        "supervisor": [reply(json.dumps({"next": name})) for name in (member, "reporter", "FINISH")],
        member: work,
        "reporter": [reply("# Report\n\n" + "It is done. " * 20)],
        "other": [reply("OK")],
    }


@asynccontextmanager
async def _both(
    scripts: Mapping[str, dict[str, Any]], member: str, settings: Mapping[str, str], site: str = ""
) -> AsyncIterator[dict[str, ServersUnderLoad]]:
    """Start the team and the bare server, each with a model of its own."""
    async with AsyncExitStack() as stack:
        yield {
            kind: stack.enter_context(
                servers_under_load(script, kind, member=member, site=site, settings=settings)
            )
            for kind, script in scripts.items()
        }


async def _in_turn(servers: Mapping[str, ServersUnderLoad], rounds: int) -> dict[str, list[LoadResult]]:
    results: dict[str, list[LoadResult]] = {kind: [] for kind in servers}
    for number in range(rounds + 1):
        for kind, one in servers.items():
            result = await one.load(kind, 1)
            if number:  # the first round warms up
                results[kind].append(result)
    return results


def _figures(name: str, results: Mapping[str, list[LoadResult]], parts: int) -> dict[str, float]:
    cpu = {kind: median(one.cpu_ms for one in of) / parts for kind, of in results.items()}
    wall = {kind: 1000 * median(one.seconds(50) for one in of) / parts for kind, of in results.items()}
    return {
        f"{name}_cpu_ms": round(cpu[TEAM], 1),
        f"{name}_bare_cpu_ms": round(cpu[BARE], 1),
        f"{name}_cpu_of_bare": round(cpu[TEAM] / cpu[BARE], 2),
        f"{name}_ms": round(wall[TEAM], 1),
        f"{name}_bare_ms": round(wall[BARE], 1),
    }

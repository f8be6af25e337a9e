"""Models that repeat every canary wherever they can speak."""

import json
from typing import Any

from tests.openai_server import call, reply
from tests.safety.site import ALL

HANDOFF = [call("handoff_to_planner")]
TORN = [ALL[start : start + 5] for start in range(0, len(ALL), 5)]


def _step(agent: str, named: str) -> dict[str, str]:
    return {
        "agent_name": agent,
        "title": f"{agent} {ALL}",
        "description": f"do {ALL} #run={named}",
        "note": ALL,
    }


def _plan(named: str, *agents: str) -> dict[str, Any]:
    steps = [_step(agent, named) for agent in agents]
    return reply(json.dumps({"thought": ALL, "title": f"Plan {ALL}", "steps": steps}), reasoning=ALL)


SMALL_TALK = {"coordinator": [{"chunks": TORN, "reasoning": TORN}]}
BROKEN_PLAN = {"coordinator": HANDOFF, "planner": [reply(f'{{"title": "{ALL}", "steps": {ALL}')]}


def working(site_url: str, *, named: str = "") -> dict[str, Any]:
    """Every tool is called with the canaries, and gives them back.

    The endpoint takes the word `named` into the ids of the workers' answers and tool calls.
    """
    program = f"import sys\nprint({ALL!r})\nprint({ALL!r}, file=sys.stderr)\nraise ValueError({ALL!r})"
    return {
        "coordinator": HANDOFF,
        "planner": [_plan(named, "researcher", "coder", "file_manager", "reporter")],
        "supervisor": [reply(json.dumps({"next": "reporter"}))],
        "researcher": [
            call("crawl_tool", url=f"{site_url}/page"),
            call("crawl_tool", url=f"{site_url}/page?key={ALL.split()[0]}"),
            call("crawl_tool", url=f"http://somebody:{ALL.split()[1]}@127.0.0.1:9/"),
            call("tavily_search", query=ALL),
            call("tavily_search", query=f"refuse {ALL}"),
            call(ALL.split()[2], argument=ALL),
            {"chunks": TORN, "reasoning": TORN},
        ],
        "coder": [
            call("python_repl_tool", code=program),
            call("python_repl_tool", wrong=ALL),
            {"tool_calls": [{"name": "python_repl_tool", "arguments": f'{{"code": "{ALL}'}]},
            call("bash_tool", cmd=f"echo '{ALL.split()[0]}'"),
            call("ask_human", question=f"Is it {ALL}?", options=[ALL, "no"]),
            reply(f"Done with {ALL}"),
        ],
        "file_manager": [call("write_file", path=f"{ALL.split()[0]}.txt", content=ALL), reply(ALL)],
        "reporter": [{"chunks": ["# ", *TORN, "\n"], "reasoning": TORN}],
    }


def failing(status: int) -> dict[str, Any]:
    """The endpoint quotes what it was sent."""
    quoted = {"status": status, "error": f"Incorrect API key provided: {ALL}", "code": "invalid_api_key"}
    return {
        role: [quoted] for role in ("coordinator", "planner", "supervisor", "researcher", "coder", "reporter")
    }

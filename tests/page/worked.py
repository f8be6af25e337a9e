"""A run in which much is done: searched, read, computed, and reported with all that Markdown has."""

import json
from typing import Any

from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.tools.evidence import cited, source_line
from tests.openai_server import call, reply
from tests.serving import Frame
from tests.team import plan, scripted_team, step

QUESTION = "How do swifts sleep, and how long do they stay in the air?"
_ABOUT_SLEEP = "It was measured with loggers of one gram."
FOUND = [
    {"title": "Common swift", "url": "https://birds.test/swift", "content": "Up to ten months aloft."},
    {"title": "Sleep on the wing", "url": "https://science.test/sleep", "content": _ABOUT_SLEEP},
]
_PAGE = """Common swifts sleep on the wing: at dusk they climb to about 2.5 km and glide.

A common swift stays up to 10 months in the air and flies at up to 31 m/s; an alpine swift stays aloft for 6.5
months, at 25 m/s."""
REPORT = """# How swifts sleep

Swifts sleep **on the wing**: they climb to about 2.5 km at dusk and glide. [1]

## In figures

| bird | months aloft | speed |
|:-----|-------------:|------:|
| common swift | 10 | 31 m/s |
| alpine swift | 6.5 | 25 m/s |

The way home, at $v = 25$ m/s, takes $t = \\frac{s}{v}$ of time.
They rest one half of the brain for 41 minutes [3], and "a swift dreams of the sea" [2].

## Computed

```python
print(round(9_000_000 / 25 / 86_400, 1), "days")
```

> It was measured with loggers of one gram. [2]

## Sources

- [1] Common swift: <https://birds.test/swift>
- [2] Sleep on the wing: <https://science.test/sleep>
"""
_STEPS = [
    step("researcher", "Read about swifts", "Find how swifts sleep and how long they fly."),
    step("coder", "Compute the way home", "How many days are 9,000 km at 25 m/s?"),
    step("reporter", "Report", "Say it in a page."),
]
_PRINTED = "\x1b[32mok\x1b[0m loggers.csv\n" + "".join(f"row {n}: 25.{n} m/s\n" for n in range(12))


@tool
async def tavily_search(query: str) -> str:
    """Search."""
    return json.dumps(await cited(FOUND))


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return f"# Common swift\n\n{await source_line(url, 'Common swift', _PAGE)}\n\n{_PAGE}"


@tool
async def bash_tool(cmd: str) -> str:
    """Run a command."""
    return _PRINTED


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python."""
    if "raise" in code:
        raise ValueError("division by zero")
    return "4.2 days\n"


_TOOLS = Offer({"researcher": [tavily_search, crawl_tool], "coder": [bash_tool, python_repl_tool]})
_SCRIPT: dict[str, Any] = {
    "coordinator": [call("handoff_to_planner", locale="en")],
    "planner": [
        reply(json.dumps(plan(*_STEPS, title="Swifts asleep")), reasoning="Read first, then compute.")
    ],
    "researcher": [
        call("tavily_search", query="how swifts sleep"),
        call("crawl_tool", url="https://birds.test/swift"),
        reply("They sleep on the wing, for up to ten months."),
    ],
    "coder": [
        call("bash_tool", cmd="head -20 loggers.csv"),
        call("python_repl_tool", code="raise ZeroDivisionError"),
        call("python_repl_tool", code="print(round(9_000_000 / 25 / 86_400, 1), 'days')"),
        reply("It takes 4.2 days."),
    ],
    "reporter": [{"chunks": REPORT.splitlines(keepends=True), "reasoning": "Short, with a table."}],
}


async def worked() -> list[Frame]:
    """Return the events of such a run."""
    async with scripted_team(_SCRIPT, toolbox=_TOOLS) as team:
        return await team.run(QUESTION, thread_id="swifts")

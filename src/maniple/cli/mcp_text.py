"""What a person is told of MCP servers and of what changed in their tools."""

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from maniple.config import Settings
from maniple.mcp import Pinned, ServerState

_SHORT = 100


def told(state: ServerState, settings: Settings, pins: Path, *, first_use: bool) -> Iterator[str]:
    """Yield lines on a server and its tools; `first_use`: what was never seen may be used, too."""
    from maniple.mcp import Pins

    if state.obstacle:
        yield f"✘ {state.name} ({state.transport}): {state.obstacle}"
        return
    workers = [one for one in settings.team.workers if state.name in settings.mcp.servers_of(one)]
    yield f"✔ {state.name} ({state.transport}), for: {', '.join(workers) or 'nobody; see mcp.workers'}"
    known = Pins(pins).of(state.name)
    for tool in state.tools:
        new = tool.definition.name not in known
        mark = "  " if not tool.obstacle or (new and first_use) else "! "
        note = f" ({tool.obstacle})" if mark == "! " else ""
        yield f"  {mark}{tool.name}{note}: {_one_line(tool.definition.description)}"
    for name, reason in state.left_out.items():
        yield f"  ✘ {name[:_SHORT]} is left out: {reason}"


def changes(state: ServerState, accepted: Mapping[str, Pinned]) -> Iterator[str]:
    """Yield what would be accepted beside what was: new tools, changed ones, and those that are gone."""
    for tool in state.tools:
        now = Pinned(tool.definition.digest, tool.definition.description, tool.definition.schema)
        before = accepted.get(tool.definition.name)
        if before is None:
            yield f"+ {tool.definition.name} is new:\n{_indented(_written(now))}"
        elif before.digest != now.digest:
            lines = difflib.unified_diff(
                _written(before).splitlines(), _written(now).splitlines(), "accepted", "now", lineterm="", n=2
            )
            changed = "\n".join(lines) or "beyond what is kept of it"
            yield f"! {tool.definition.name} changed:\n{_indented(changed)}"
    for name in sorted(accepted.keys() - {tool.definition.name for tool in state.tools}):
        yield f"- {name} is gone"


def _written(pinned: Pinned) -> str:
    return f"{pinned.description}\n{json.dumps(pinned.schema, indent=1, ensure_ascii=False, sort_keys=True)}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else f"{line[:_SHORT]}…"

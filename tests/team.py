"""A whole team over a scripted endpoint, with tools that answer at once."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from maniple.agents import ROLES, build_roles
from maniple.agents.offers import Offer
from maniple.agents.profiles import build_workers
from maniple.config import ModelsSettings, TeamSettings
from maniple.events import Event
from maniple.graph import RunOptions, Team, TeamRules, TeamServices, build_graph
from maniple.llms import open_chat_models
from maniple.runs.turn import stream_run
from tests.grammar import Client
from tests.openai_server import OpenAIServer, serving


def step(agent: str, title: str = "", description: str = "") -> dict[str, str]:
    return {
        "agent_name": agent,
        "title": title or f"{agent}'s step",
        "description": description or f"do {agent}",
    }


def plan(*steps: dict[str, str], title: str = "The plan") -> dict[str, Any]:
    return {"thought": "t", "title": title, "steps": list(steps)}


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python."""
    if code == "hang":
        await asyncio.Event().wait()
    if "boom" in code:
        raise ValueError("the tool is broken")
    return "4"


@tool
async def tavily_search(query: str) -> str:
    """Search."""
    return '[{"title": "T", "url": "https://e.test/a", "content": "c"}]'


TOOLS = Offer({"coder": [python_repl_tool], "researcher": [tavily_search]})


@dataclass
class Scripted:
    team: Team
    server: OpenAIServer

    async def run(self, text: str = "1+3=?", **options: Any) -> list[tuple[str, dict[str, Any]]]:
        """Run once and return the frames, checked against the old client's grammar."""
        thread_id = options.pop("thread_id", None)
        messages: Sequence[BaseMessage] = options.pop("messages", None) or [HumanMessage(text)]
        events = stream_run(self.team, messages, thread_id=thread_id, options=RunOptions(**options))
        return checked([event async for event in events])

    def prompts(self, role: str) -> list[str]:
        """Return all that each call for `role` was shown, as text."""
        shown = ["\n".join(str(m.get("content")) for m in r["messages"]) for r in self.server.requests]
        return [text for text in shown if text.startswith(f"You are the {role}")]


@asynccontextmanager
async def scripted_team(
    script: dict[str, Any],
    *,
    rules: TeamRules | None = None,
    checkpointer: Any = "memory",
    models: dict[str, Any] | None = None,
    toolbox: Offer = TOOLS,
    server: OpenAIServer | None = None,
    **options: Any,
) -> AsyncIterator[Scripted]:
    """Open a team over `script`, or over a `server` that stays; `settings` are the team's."""
    settings: TeamSettings | None = options.pop("settings", None)
    with nullcontext(server) if server else serving(script) as server:
        endpoint = {"base_url": server.base_url, "timeout_seconds": 60, "max_retries": 0, **(models or {})}
        each = {"basic": {"model": "m", **endpoint}, "reasoning": {"model": "deep", **endpoint}}
        async with open_chat_models(ModelsSettings.model_validate(each)) as chat:
            who = build_roles(settings) if settings else ROLES
            team = build_graph(
                chat,
                build_workers(settings or TeamSettings(), chat, toolbox, who),
                rules=rules or TeamRules(roles=who),
                services=TeamServices(**options),
                checkpointer=InMemorySaver() if checkpointer == "memory" else checkpointer,
            )
            yield Scripted(team, server)


def checked(events: Sequence[Event]) -> list[tuple[str, dict[str, Any]]]:
    frames = [(event.type, event.data()) for event in events]
    Client().read(frames)
    return frames


def names(frames: Sequence[tuple[str, Any]]) -> list[str]:
    return [name for name, _ in frames]


def data(frames: Sequence[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    """Return the data of all events of a name; of plans, without the drafts."""
    return [content for one, content in frames if one == name and not content.get("draft")]


def drafts(frames: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [content for one, content in frames if one == "plan" and content.get("draft")]


def agents(frames: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    return [one["agent_name"] for one in data(frames, "start_of_agent")]


def joined_text(frames: Sequence[tuple[str, dict[str, Any]]], key: str = "content") -> str:
    return "".join(one["delta"].get(key, "") for one in data(frames, "message"))


def status(frames: Sequence[tuple[str, dict[str, Any]]]) -> str:
    return data(frames, "run_status")[0]["status"]

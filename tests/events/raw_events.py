"""Raw events as LangGraph would send them."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.types import Command

from maniple.types import AGENTS as ALL
from maniple.types import BROWSER_STATE, BROWSER_STEP, TOOL_OUTPUT

Raw = dict[str, Any]
AGENTS = ("coordinator", "planner", "supervisor", "researcher", "coder", "reporter")


def _agent_in(ns: str) -> str:
    """The mark that a node of ours leaves in all its events."""
    return [one.split(":")[0] for one in ns.split("|") if one.split(":")[0] in ALL][-1]


def raw(event: str, name: str, ns: str, run_id: str, *, data: Raw | None = None, **more: Any) -> Raw:
    return {
        "event": event,
        "name": name,
        "run_id": run_id,
        "tags": more.get("tags", []),
        "parent_ids": more.get("parents", []),
        "metadata": {"langgraph_checkpoint_ns": ns, "langgraph_step": 3, "maniple_agent": _agent_in(ns)},
        "data": data or {},
    }


class Turn:
    """The raw events of one agent's turn, as LangGraph would send them."""

    def __init__(self, agent: str, number: object, prefix: str = "") -> None:
        self.agent, self.ns = agent, f"{prefix}{agent}:{number}"
        self.id = f"{agent}{number}"
        self.calls = 0

    def start(self) -> Raw:
        return raw("on_chain_start", self.agent, self.ns, self.id, tags=["graph:step:3"])

    def end(self, *messages: Any, **update: Any) -> Raw:
        output = Command(update={"messages": list(messages), **update})
        return raw(
            "on_chain_end", self.agent, self.ns, self.id, tags=["graph:step:3"], data={"output": output}
        )

    def say(self, *pieces: str, ended: bool = True, parents: Sequence[str] = ()) -> list[Raw]:
        self.calls += 1
        call, ns = f"{self.id}-llm{self.calls}", f"{self.ns}|model:1"
        chunks = [AIMessageChunk(piece, id=call) for piece in pieces]
        events = [raw("on_chat_model_start", "M", ns, call, parents=parents)]
        events += [
            raw("on_chat_model_stream", "M", ns, call, parents=parents, data={"chunk": c}) for c in chunks
        ]
        if ended:
            output = AIMessage("".join(pieces), id=call)
            events.append(raw("on_chat_model_end", "M", ns, call, parents=parents, data={"output": output}))
        return events

    def use(
        self, tool: str, *, outcome: str = "result", inside: Sequence[Raw] = (), printed: str = ""
    ) -> list[Raw]:
        self.calls += 1
        call, ns = f"{self.id}-tool{self.calls}", f"{self.ns}|tools:1"
        events = [raw("on_tool_start", tool, ns, call, data={"input": {"code": "1"}})]
        events += [{**one, "parent_ids": [call]} for one in inside]
        events += [raw("on_custom_event", TOOL_OUTPUT, ns, call, data=_printed(piece)) for piece in printed]
        if outcome == "result":
            output = ToolMessage("4", tool_call_id="x")
            events.append(raw("on_tool_end", tool, ns, call, data={"output": output}))
        elif outcome == "error":
            events.append(raw("on_tool_error", tool, ns, call, data={"error": ValueError("bad input")}))
        return events

    def step(self, number: int, state: str) -> Raw:
        """Return the events of a step of a browser call, as emitted by a node within it."""
        data = {"number": number, "state": state, "action": {"name": "wait", "parameters": {}}}
        return raw(
            "on_custom_event", BROWSER_STEP, f"{self.ns}|work:1|model:2", f"{self.id}-inner", data=data
        )

    def look(self) -> Raw:
        """Where the browser is."""
        tab = {"tab_id": 1, "url": "https://e.test/", "title": "E", "is_current": True}
        data = {"url": "https://e.test/", "title": "E", "tabs": [tab], "screenshot": None}
        return raw("on_custom_event", BROWSER_STATE, f"{self.ns}|model:2", f"{self.id}-inner", data=data)


def _printed(text: str) -> Raw:
    return {"stream": "stdout", "text": text}


def foreign(agent: str, number: object, prefix: str = "") -> list[Raw]:
    """A parent graph's node with an agent's name: with model, tool and graph inside, but without our mark."""
    turn = Turn(agent, number, prefix)
    inner = Turn("planner", number, f"{turn.ns}|inner:1|")
    events = [
        turn.start(),
        *turn.say("theirs"),
        *turn.use("bash_tool", inside=turn.say("theirs")),
        inner.start(),
        *inner.say("theirs"),
        inner.end(HumanMessage("theirs")),
        turn.end(HumanMessage("theirs")),
    ]
    for one in events:
        del one["metadata"]["maniple_agent"]
    return events


def nested(turn: Turn) -> list[Raw]:
    """A graph inside an agent, with a node of the agent's own name: LangGraph hands the mark down to it."""
    inner = Turn(turn.agent, f"{turn.id}-inner", f"{turn.ns}|graph:1|")
    return [inner.start(), *inner.say("x"), *inner.use("bash_tool"), inner.end(("user", "their own"))]


def mixed(lanes: Sequence[Sequence[Raw]], random: Any) -> list[Raw]:
    """Return the lanes' events in any order that keeps each lane's own."""
    waiting = [list(lane) for lane in lanes]
    told: list[Raw] = []
    while any(waiting):
        told.append(random.choice([one for one in waiting if one]).pop(0))
    return told

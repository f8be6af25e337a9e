"""A team that works under a budget, as a run of ours does."""

from typing import Any

from langchain_core.messages import HumanMessage

from maniple.events.translator import translate
from maniple.graph import RECURSION_LIMIT, RunOptions
from maniple.scope.budget import UsageMeter
from maniple.scope.inbox import Inbox
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from tests.team import Scripted, checked


async def metered(
    it: Scripted,
    meter: UsageMeter,
    text: str = "1+3=?",
    *,
    thread_id: str = "t",
    inbox: Inbox | None = None,
    **options: Any,
) -> list[tuple[str, dict[str, Any]]]:
    """Run once under `meter` and return the frames, checked against the old client's grammar."""
    messages = [HumanMessage(text)]
    meter.start()
    scope = {"thread_id": thread_id, SCOPE_KEY: RunScope(run_id="r", meter=meter, inbox=inbox or Inbox())}
    config = {"configurable": scope, "callbacks": meter.callbacks, "recursion_limit": RECURSION_LIMIT}
    raw = it.team.astream_events(
        {"messages": messages}, config, context=RunOptions(**options), version="v2", durability="exit"
    )
    events = translate(raw, run_id="r", thread_id=thread_id, messages=messages)
    return checked([event async for event in events])

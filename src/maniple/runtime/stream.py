"""Drive the team once and tell what happens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from maniple.events import Event, Translator
from maniple.graph import RECURSION_LIMIT, RunOptions, Team
from maniple.types import RunStatus


async def stream_run(
    team: Team,
    messages: Sequence[BaseMessage],
    *,
    thread_id: str | None = None,
    options: RunOptions | None = None,
    run_id: str | None = None,
    gate: AbstractAsyncContextManager[Any] | None = None,
) -> AsyncIterator[Event]:
    """Run the team on `messages` and yield typed events, from `run` to `final_session_state`.

    On a thread with a history (the team must have a checkpointer) only the newest message is added; on
    one that waits for an answer, that message is the answer. Errors of the run are told as events and
    not raised. When the reading task is cancelled the closing events still come, then the cancellation.
    The team works inside `gate`, such as a lock of the thread.
    """
    run_id = run_id or str(uuid4())
    thread_id = thread_id or run_id
    translator = Translator(run_id, thread_id, messages)
    status: RunStatus = "completed"
    failure: Exception | None = None
    cancelled: asyncio.CancelledError | None = None
    for event in translator.open():
        yield event
    try:
        async with gate or nullcontext():
            async for event in _work(team, messages, thread_id, options or RunOptions(), translator):
                yield event
    except asyncio.CancelledError as cancellation:
        status, cancelled = "cancelled", cancellation
    except Exception as error:  # noqa: BLE001 - the client must hear of whatever ended the run
        status, failure = "failed", error
    for event in translator.close(status, failure):
        yield event
    if cancelled is not None:
        raise cancelled


async def _work(
    team: Team,
    messages: Sequence[BaseMessage],
    thread_id: str,
    options: RunOptions,
    translator: Translator,
) -> AsyncIterator[Event]:
    # `astream_events` would put LangGraph's default of 25 in the place of the graph's own limit.
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}, "recursion_limit": RECURSION_LIMIT}
    keeps = isinstance(team.checkpointer, BaseCheckpointSaver)
    given: Any = {"messages": list(messages)}
    keeping: dict[str, Any] = {}
    if keeps:
        keeping["durability"] = "exit"
        given = await _given(team, messages, config)
    raw_events = team.astream_events(given, config, context=options, version="v2", **keeping)
    # A generator, though LangGraph promises less: closing it cancels the graph and waits for its end.
    async with aclosing(cast("AsyncGenerator[Any]", raw_events)) as stream:
        async for raw in stream:
            for event in translator.feed(raw):
                yield event


async def _given(team: Team, messages: Sequence[BaseMessage], config: RunnableConfig) -> Any:
    state = await team.aget_state(config)
    if state.interrupts:
        return Command(resume=messages[-1].text)
    return {"messages": list(messages[-1:] if state.values.get("messages") else messages)}

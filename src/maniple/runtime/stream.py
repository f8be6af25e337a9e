"""Drive the team once and tell what happens."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from maniple.events import Event, Translator
from maniple.graph import RunOptions, Team


async def stream_run(
    team: Team,
    messages: Sequence[BaseMessage],
    *,
    thread_id: str | None = None,
    options: RunOptions | None = None,
    run_id: str | None = None,
) -> AsyncIterator[Event]:
    """Run the team on `messages` and yield typed events, from `run` to `final_session_state`.

    On a thread with a history (the team must have a checkpointer) only the newest message is added; on
    one that waits for an answer, that message is the answer. Errors of the run are told as events and
    not raised. When the reading task is cancelled the closing events still come, then the cancellation.
    """
    run_id = run_id or str(uuid4())
    thread_id = thread_id or run_id
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    translator = Translator(run_id, thread_id, messages)
    for event in translator.open():
        yield event
    try:
        given = await _given(team, messages, config)
        raw_events = team.astream_events(
            given, config, context=options or RunOptions(), version="v2", durability="exit"
        )
        async with aclosing(raw_events) as stream:
            async for raw in stream:
                for event in translator.feed(raw):
                    yield event
        pauses = await _pauses(team, config)
    except asyncio.CancelledError:
        for event in translator.close("cancelled"):
            yield event
        raise
    except Exception as error:  # noqa: BLE001 - the client must hear of whatever ended the run
        for event in translator.close("failed", error):
            yield event
        return
    for pause in pauses:
        for event in translator.interrupted(pause.id, pause.value):
            yield event
    for event in translator.close("interrupted" if pauses else "completed"):
        yield event


async def _given(team: Team, messages: Sequence[BaseMessage], config: RunnableConfig) -> Any:
    if not isinstance(team.checkpointer, BaseCheckpointSaver):
        return {"messages": list(messages)}
    state = await team.aget_state(config)
    if state.interrupts:
        return Command(resume=messages[-1].text)
    return {"messages": list(messages[-1:] if state.values.get("messages") else messages)}


async def _pauses(team: Team, config: RunnableConfig) -> Sequence[Any]:
    if not isinstance(team.checkpointer, BaseCheckpointSaver):
        return ()
    return (await team.aget_state(config)).interrupts

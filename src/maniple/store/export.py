"""All that is kept, as JSON lines that need no maniple to be read."""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from maniple.store.protocols import Store
from maniple.store.reading import stored
from maniple.store.records import RunRecord, Thread

PAGE = 500


async def export(store: Store, thread_id: str | None = None) -> AsyncIterator[str]:
    """Yield a JSON object a line, for one thread or for all: what it is (`record`), then its fields.

    Records: thread, run, event, tool_call, source (without what was read there), artifact (without its
    content), each after what it belongs to.
    Raises `LookupError` for a thread that is not there. API keys and checkpoints are left out.
    """
    if thread_id is not None:
        thread = await store.threads.get(thread_id, None)
        if thread is None:
            raise LookupError(f"There is no thread {thread_id}.")
        async for line in _thread(store, thread):
            yield line
        return
    before: float | None = None
    while page := await store.threads.list(None, PAGE, before):
        for thread in page:
            async for line in _thread(store, thread):
                yield line
        before = page[-1].created_at


async def _thread(store: Store, thread: Thread) -> AsyncIterator[str]:
    yield _line("thread", asdict(thread))
    before: float | None = None
    while page := await store.runs.of_thread(thread.thread_id, PAGE, before):
        for run in page:
            async for line in _run(store, run):
                yield line
        before = page[-1].created_at


async def _run(store: Store, run: RunRecord) -> AsyncIterator[str]:
    yield _line("run", {**asdict(run), "request": _parsed(run.request)})
    async for page in stored(store.events, run.run_id):
        for event in page:
            named = {"run_id": run.run_id, "number": event.number, "type": event.type, "at": event.at}
            yield _line("event", {**named, "data": _parsed(event.data)})
    for call in await store.ledger.of_run(run.run_id):
        parsed = {"arguments": _parsed(call.arguments), "result": _parsed(call.result)}
        yield _line("tool_call", {**asdict(call), **parsed})
    for source in await store.evidence(run.run_id).sources():
        yield _line("source", {"run_id": run.run_id, **asdict(source)})
    for artifact in await store.artifacts.of_run(run.run_id):
        yield _line("artifact", asdict(artifact))


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _line(kind: str, fields: dict[str, Any]) -> str:
    # A run has a `kind` of its own: who drives it.
    return json.dumps({"record": kind, **fields}, ensure_ascii=False)

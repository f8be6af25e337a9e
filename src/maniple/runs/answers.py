"""The answer of a run that has ended, from its stored events."""

from maniple.events import Event, RunStatusChanged, SessionState, event_of, load_run_view, read_event
from maniple.store import RunRecord, Store, read_event_pages


async def read_answer(store: Store, run: RunRecord) -> str | None:
    """Return the report of a run as Markdown; None if the run has not ended with one.

    Of a retry that was cancelled it is the report from before the retry.

    Raises:
        StoreError: the events cannot be read.
    """
    if run.status == "cancelled":
        return await _read_earlier_answer(store, run) if run.retries > 0 else None
    if run.status == "failed":
        # A failed run has a report only if code compiled one instead of the reporter; its view then has gaps.
        if not (await load_run_view(store.events, run.run_id, [RunStatusChanged])).gaps:
            return None
    elif run.status not in ("completed", "budget_exhausted"):
        return None
    last = await store.events.last(run.run_id)
    return _answer_of(read_event(last.type, last.data) if last else None)


async def _read_earlier_answer(store: Store, run: RunRecord) -> str | None:
    """Return the answer of the newest segment of a run that ended with one."""
    answer, has_answer = None, False
    types = (RunStatusChanged.type, SessionState.type)
    async for page in read_event_pages(store.events, run.run_id, types=types):
        for record in page:
            event = event_of(record)
            if isinstance(event, RunStatusChanged):
                is_by_code = event.status == "failed" and bool(event.gaps)
                has_answer = event.status in ("completed", "budget_exhausted") or is_by_code
            elif has_answer:
                answer = _answer_of(event)
    return answer


def _answer_of(event: Event | None) -> str | None:
    """Return the answer that the last event of a segment holds."""
    if not isinstance(event, SessionState) or not event.messages:
        return None
    content = event.messages[-1].content
    return content if isinstance(content, str) else ""

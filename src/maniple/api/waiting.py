"""What a run waits for, read from what it told last."""

from maniple.api.schemas import InterruptView
from maniple.events import RunInterrupted, RunStarted, read_event
from maniple.store import RunRecord, Store

PAGE = 200
_BEGIN = RunStarted.type
_INTERRUPT = RunInterrupted.type


async def waits_for(store: Store, run: RunRecord) -> list[InterruptView]:
    """Return the interrupts of the newest stretch of a run that is interrupted; of any other none.

    They stand together near the end of the log, so that it is read from its end.
    """
    if run.status != "interrupted":
        return []
    newest = await store.events.last(run.run_id)
    end, size = newest.number if newest else 0, PAGE
    found: list[InterruptView] = []
    while end > 0:
        begin = max(0, end - size)
        for record in reversed(await store.events.read(run.run_id, begin, end - begin)):
            if record.type == _INTERRUPT:
                event = read_event(record.type, record.data)
                found += [InterruptView.of(event)] if isinstance(event, RunInterrupted) else []
            elif found or record.type == _BEGIN:
                return found[::-1]
        end, size = begin, 2 * size
    return found[::-1]

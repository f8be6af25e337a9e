"""What a run waits for, read from what it told."""

from maniple.api.schemas import InterruptView
from maniple.events import Interrupted, RunStarted, read_event
from maniple.store import RunRecord, Store

PAGE = 1_000


async def waits_for(store: Store, run: RunRecord) -> list[InterruptView]:
    """Return the interrupts of the newest stretch of a run that is interrupted; of any other none."""
    if run.status != "interrupted":
        return []
    found: list[InterruptView] = []
    number = 0
    while page := await store.events.read(run.run_id, number, PAGE):
        number = page[-1].number
        for record in page:
            if record.type == RunStarted.model_fields["type"].default:
                found = []
            elif record.type == Interrupted.model_fields["type"].default:
                event = read_event(record.type, record.data)
                found += [InterruptView.of(event)] if isinstance(event, Interrupted) else []
    return found

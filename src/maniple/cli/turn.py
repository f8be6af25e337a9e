"""One run, from the question to its last event."""

import asyncio
import errno

from maniple.cli.interrupts import cancelling, silent_keyboard
from maniple.cli.tally import Tally
from maniple.cli.view import View
from maniple.events import read_event
from maniple.runs import Engine


async def follow(engine: Engine, run_id: str, view: View, *, after: int = 0) -> Tally:
    """Show the run, from the event that follows number `after`, until it ends or waits for an answer.

    Ctrl-C cancels it, and so does a reader of the output who has left. It is not cancelled when the
    program is ended or its terminal is closed: then it can go on later.
    """
    tally = Tally()
    stop = _Stop(engine, run_id)
    try:
        with silent_keyboard():
            async with view:
                with cancelling(stop.begin, view.say):
                    async for page in engine.events(run_id, after):
                        for record in page:
                            event = read_event(record.type, record.data)
                            tally.count(event)
                            view.show(record.number, event)
    except OSError as error:
        if error.errno != errno.EIO:  # that is what a terminal says which was closed
            await engine.cancel(run_id)
        raise
    await stop.done()
    view.finish(tally)
    return tally


class _Stop:
    """The wish that a run be cancelled; a signal handler cannot wait for its fulfilment."""

    def __init__(self, engine: Engine, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._task: asyncio.Task[object] | None = None

    def begin(self) -> None:
        self._task = asyncio.create_task(self._engine.cancel(self._run_id))

    async def done(self) -> None:
        """Wait until a cancelled run is kept as such."""
        if self._task is not None:
            await self._task

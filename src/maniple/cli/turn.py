"""One run, from the question to its last event."""

from maniple.cli.interrupts import cancelling, silent_keyboard
from maniple.cli.tally import Tally
from maniple.cli.view import View
from maniple.runs import Run


async def follow(run: Run, view: View) -> Tally:
    """Show the run until it has ended. Ctrl-C cancels it; whatever else ends the showing does too."""
    tally = Tally()
    try:
        with silent_keyboard():
            async with view:
                with cancelling(run.cancel, view.say):
                    async for number, event in run.events():
                        tally.count(event)
                        view.show(number, event)
    finally:
        run.cancel()  # nobody would hear of it any more; it is over already in the ordinary case
    view.finish(tally)
    return tally

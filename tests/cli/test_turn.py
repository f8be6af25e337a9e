import asyncio
import io
import os
import signal

import pytest

from maniple.cli import interrupts
from maniple.cli.plain import PlainView
from maniple.cli.tally import Tally
from maniple.cli.turn import follow
from maniple.events import Event
from tests.cli.events import small_talk, started
from tests.cli.runs import ScriptedRun

pytestmark = pytest.mark.anyio


class ClosedView(PlainView):
    """A view whose reader has gone."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), io.StringIO())

    def show(self, number: int, event: Event) -> None:
        """Fail as a closed pipe does."""
        raise BrokenPipeError


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def following(run: ScriptedRun, notes: io.StringIO) -> "asyncio.Task[Tally]":
    """Follow a run that hangs, from the moment in which it does."""
    task = asyncio.create_task(follow(run, PlainView(io.StringIO(), notes)))  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        await run.waiting.wait()
    return task


async def test_ctrl_c_cancels_the_run_which_still_ends_properly() -> None:
    run, notes = ScriptedRun([started()], hangs=True), io.StringIO()
    before = signal.getsignal(signal.SIGINT)
    task = await following(run, notes)
    interrupt()
    tally = await asyncio.wait_for(task, 5)

    assert (tally.status, tally.exit_code) == ("cancelled", 130)
    assert "Cancelling the run … Ctrl-C again quits at once." in notes.getvalue()
    assert "✘ cancelled" in notes.getvalue()
    assert signal.getsignal(signal.SIGINT) is before


async def test_a_second_ctrl_c_quits_when_the_run_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[float] = []
    monkeypatch.setattr(interrupts, "_leave_after", patience.append)
    pressed, notes = asyncio.Event(), io.StringIO()
    run = ScriptedRun([started()], hangs=True)
    monkeypatch.setattr(run, "cancel", pressed.set)
    task = await following(run, notes)
    interrupt()
    await asyncio.wait_for(pressed.wait(), 5)
    interrupt()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)

    assert "Quitting without waiting for the run to end." in notes.getvalue()
    assert patience == [5.0]


async def test_a_run_is_cancelled_when_nobody_follows_it_any_more() -> None:
    run = ScriptedRun([started()], hangs=True)
    task = await following(run, io.StringIO())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.cancellations == 1


async def test_a_run_is_cancelled_when_its_output_is_closed() -> None:
    run = ScriptedRun(small_talk(), hangs=True)
    with pytest.raises(BrokenPipeError):
        await follow(run, ClosedView())  # type: ignore[arg-type]
    assert run.cancellations == 1

import asyncio
import errno
import io
import os
import signal

import pytest
from langchain_core.messages import HumanMessage

from maniple.cli import process
from maniple.cli.chat.session import follow_run
from maniple.cli.render.plain import PlainDisplay
from maniple.cli.render.run_text import exit_code
from maniple.events import Event, RunView
from maniple.runs import RunRequest
from tests.cli.events import small_talk, started
from tests.cli.runs import ScriptedEngine, ScriptedRun

pytestmark = pytest.mark.anyio


class ClosedView(PlainDisplay):
    """A view whose reader has gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self._error = error

    def show(self, number: int, event: Event, run: RunView) -> None:
        """Fail as a closed pipe or terminal does."""
        raise self._error


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def followed(run: ScriptedRun, view: PlainDisplay) -> RunView:
    engine = ScriptedEngine(run)
    accepted = await engine.submit(RunRequest([HumanMessage("hello")]))
    return await follow_run(engine, accepted.run.run_id, view)


async def following(run: ScriptedRun, notes: io.StringIO) -> "asyncio.Task[RunView]":
    """Follow a run that hangs, from the moment in which it does."""
    task = asyncio.create_task(followed(run, PlainDisplay(io.StringIO(), notes)))
    async with asyncio.timeout(60):
        await run.waiting.wait()
    return task


async def test_ctrl_c_cancels_the_run_which_still_ends_properly() -> None:
    run, notes = ScriptedRun([started()], hangs=True), io.StringIO()
    before = signal.getsignal(signal.SIGINT)
    task = await following(run, notes)
    interrupt()
    ended = await asyncio.wait_for(task, 60)

    assert (ended.status, exit_code(ended)) == ("cancelled", 130)
    assert "Cancelling the run" in notes.getvalue()
    assert "✘ cancelled" in notes.getvalue()
    assert signal.getsignal(signal.SIGINT) is before


async def test_a_second_ctrl_c_quits_when_the_run_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[float] = []
    monkeypatch.setattr(process, "_force_exit_after", patience.append)
    pressed, notes = asyncio.Event(), io.StringIO()
    run = ScriptedRun([started()], hangs=True)
    monkeypatch.setattr(run, "cancel", pressed.set)
    task = await following(run, notes)
    interrupt()
    await asyncio.wait_for(pressed.wait(), 60)
    interrupt()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)

    assert "Quitting without waiting" in notes.getvalue()
    assert patience == [5.0]


async def test_a_program_that_is_ended_leaves_its_run_to_go_on_later() -> None:
    run = ScriptedRun([started()], hangs=True)
    task = await following(run, io.StringIO())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.cancellations == 0


async def test_a_run_is_cancelled_when_the_reader_of_its_output_has_left() -> None:
    run = ScriptedRun(small_talk(), hangs=True)
    with pytest.raises(BrokenPipeError):
        await followed(run, ClosedView(BrokenPipeError()))
    assert run.cancellations == 1


async def test_a_run_is_not_cancelled_when_its_terminal_is_closed() -> None:
    run = ScriptedRun(small_talk(), hangs=True)
    with pytest.raises(OSError, match="Input/output error"):
        await followed(run, ClosedView(OSError(errno.EIO, "Input/output error")))
    assert run.cancellations == 0


def test_a_typed_line_is_edited_by_keys_and_sent_by_enter() -> None:
    sent: list[str] = []
    line = process.TypedLine(sent.append)
    line.feed("grün".encode()[:3])
    line.feed("grün".encode()[3:])
    assert line.text == "grün"
    line.feed(b"\x7f\x1b[D\x1bOAx")
    assert line.text == "grüx"
    line.feed(b"\r\r  \n")
    line.feed(b"\x1b[200~two\rlines\x1b[201~\x15rest")
    assert sent == ["grüx", "two"]
    assert line.text == "rest"

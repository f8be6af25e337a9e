"""Third-party functions block no other work and end no process."""

import argparse
import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from maniple import third_party
from maniple.errors import ToolFailure
from maniple.third_party import in_thread, shield_from_exit

pytestmark = pytest.mark.anyio
WHO = contextvars.ContextVar("who", default="nobody")


async def test_a_blocking_function_gives_its_result_and_finds_its_callers_context():
    WHO.set("Ann")
    assert await in_thread(lambda greeting, name: f"{greeting}, {WHO.get()} {name}")("Hello", name="Lee") == (
        "Hello, Ann Lee"
    )


async def test_what_it_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0)()


@pytest.mark.parametrize("error", [StopIteration("odd"), asyncio.CancelledError("odd"), GeneratorExit("odd")])
async def test_what_would_end_or_hang_its_caller_is_raised_as_an_error(error):
    def raise_it():
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await in_thread(raise_it)()


def parse(text):
    argparse.ArgumentParser(prog="tool").parse_args([text])


async def parse_later(text):
    parse(text)


async def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("leaving", [in_thread(parse), shield_from_exit(parse_later)])
async def test_a_tool_that_tries_to_exit_the_program_fails(leaving, capsys):
    with pytest.raises(ToolFailure, match=r"whole program \(SystemExit\(2\)\)"):
        await leaving("--bogus")
    assert "unrecognized arguments" in capsys.readouterr().err


async def test_nor_does_an_interrupt_of_its_own_end_it():
    with pytest.raises(ToolFailure, match="KeyboardInterrupt"):
        await shield_from_exit(interrupt)()


async def test_calls_that_never_end_fill_no_more_than_their_own_places(monkeypatch):
    monkeypatch.setattr(third_party, "MAX_THREADS", 2)
    over = threading.Event()
    hung = [asyncio.create_task(in_thread(over.wait)(20)) for _ in range(2)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(ToolFailure, match="2 third-party calls"):
            await in_thread(str)(1)
        assert await asyncio.to_thread(str, 1) == "1"
    finally:
        over.set()
    await asyncio.gather(*hung)


def test_the_program_ends_although_a_call_does_not():
    program = """if True:
        import asyncio, threading
        from maniple.third_party import in_thread
        async def main():
            try:
                await asyncio.wait_for(in_thread(threading.Event().wait)(), 0.05)
            except TimeoutError:
                print("given up")
        asyncio.run(main())
    """
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up\n", "")


async def test_an_exception_that_no_future_accepts_still_ends_the_call():
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(next)(iter(()))

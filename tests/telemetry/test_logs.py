import asyncio
import io
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import uvicorn

from maniple.redaction import Redactor
from maniple.telemetry.logs import (
    QUEUE_RECORDS,
    REPEAT_SECONDS,
    REPEATS,
    LogFormat,
    RepeatFilter,
    configure_logs,
    flush_logs,
    log_context,
)
from tests.serving import environment

KEY = "sk-canary/0123456789"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)
    structlog.reset_defaults()


def unreachable() -> None:
    raise ConnectionError(f"GET https://e.test/?key={KEY}") from ValueError(KEY)


def configured(format: LogFormat = "json", level: str = "INFO") -> io.StringIO:
    stream = io.StringIO()
    logging.getLogger().handlers.clear()  # pytest's own would complain of what these tests log
    configure_logs(level, format, Redactor([KEY]), stream=stream)
    return stream


def written_to(stream: io.StringIO) -> str:
    flush_logs()
    return stream.getvalue()


def lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in written_to(stream).splitlines()]


def test_libraries_and_our_own_records_come_out_alike() -> None:
    stream = configured()
    logging.getLogger("uvicorn.error").warning("uvicorn says %s", "this")
    logging.getLogger("langchain_core").error("langchain says")
    structlog.get_logger("maniple.own").info("ours", count=3)
    first, second, third = lines(stream)
    assert (first["event"], first["logger"], first["level"]) == (
        "uvicorn says this",
        "uvicorn.error",
        "warning",
    )
    assert second["logger"] == "langchain_core"
    assert (third["event"], third["count"], third["logger"]) == ("ours", 3, "maniple.own")
    assert all(line["timestamp"].endswith("Z") for line in (first, second, third))


def test_ids_are_in_every_record_made_inside() -> None:
    stream = configured()
    with log_context(run_id="r1", thread_id="t1"), log_context(key_id="k1"):
        logging.getLogger("anyone").info("inside")
    logging.getLogger("anyone").info("outside")
    inside, outside = lines(stream)
    assert (inside["run_id"], inside["thread_id"], inside["key_id"]) == ("r1", "t1", "k1")
    assert "run_id" not in outside


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_secret_is_in_no_record_wherever_it_stood(format: LogFormat) -> None:
    stream = configured(format)
    log = logging.getLogger("any")
    log.warning("words %s", KEY)
    log.warning("fields", extra={"key": KEY})
    structlog.get_logger().warning("ours", headers={"Authorization": f"Bearer {KEY}"})
    with log_context(key_id=KEY):
        log.warning("context")
    try:
        unreachable()
    except ConnectionError:
        log.exception("failed")
        structlog.get_logger().exception("failed")
    written = written_to(stream)
    assert KEY not in written
    assert "0123456789" not in written
    assert written.count("ConnectionError: GET https://e.test/?key=***") == 2
    if format == "json":
        assert len(lines(stream)) == 6


def test_an_unformattable_record_does_not_reveal_its_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    stream = configured()
    logging.getLogger("any").warning("a number: %d", KEY)
    logging.getLogger("any").warning("next")
    shown = "".join(capfd.readouterr()) + written_to(stream)
    assert KEY not in shown
    assert "could not be written" in shown
    assert lines(stream)[-1]["event"] == "next"


def test_a_records_words_cannot_steer_the_terminal_or_forge_a_record() -> None:
    stream = configured("console")
    logging.getLogger("any").warning("one\x1b[2J\r\n2026-01-01 [error] forged")
    written = written_to(stream)
    assert "\x1b" not in written
    assert "\r" not in written
    assert written.splitlines()[1].startswith("    ")


def test_colours_are_for_terminals_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plain, terminal = configured("console"), Terminal()
    logging.getLogger("any").warning("x")
    configure_logs("INFO", "console", Redactor(), stream=terminal)
    logging.getLogger("any").warning("x")
    assert "\x1b[" not in written_to(plain)
    assert "\x1b[" in terminal.getvalue()


def test_a_second_configuration_takes_the_place_of_the_first() -> None:
    first, second = configured(), configured()
    logging.getLogger("any").warning("x")
    assert written_to(first) == ""
    assert len(lines(second)) == 1


def test_levels_hold_and_chatty_libraries_are_quiet_unless_one_debugs() -> None:
    stream = configured(level="WARNING")
    logging.getLogger("any").info("no")
    structlog.get_logger("any").info("no")
    stream = configured(level="INFO")
    logging.getLogger("httpx").info("no")
    assert written_to(stream) == ""
    stream = configured(level="DEBUG")
    logging.getLogger("httpx").info("yes")
    structlog.get_logger("any").debug("yes")
    assert len(lines(stream)) == 2


def test_threads_that_log_at_once_do_not_mix_their_lines() -> None:
    stream = configured()

    def work(number: int) -> None:
        with log_context(run_id=str(number)):
            for _ in range(50):
                logging.getLogger("any").info(str(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    written = lines(stream)
    assert len(written) == 200
    assert all(line["event"] == line["run_id"] for line in written)


def test_importing_configures_nothing_and_a_programs_end_is_logged_without_secrets(tmp_path: Path) -> None:
    program = f"""
import logging, sys, threading
hook = sys.excepthook
from maniple.telemetry import logs
from maniple.redaction import Redactor
assert not logging.getLogger().handlers and sys.excepthook is hook
logs.configure_logs("INFO", "json", Redactor(["{KEY}"]))
def work(): raise RuntimeError("in a thread: {KEY}")
thread = threading.Thread(target=work, name="t"); thread.start(); thread.join()
import warnings; warnings.warn("a warning with {KEY}")
import asyncio
async def main():
    task = asyncio.create_task(asyncio.sleep(0)); task.set_name("{KEY}")
    asyncio.get_running_loop().call_exception_handler({{"message": "in the loop: {KEY}"}})
    await task
asyncio.run(main())
raise RuntimeError("at last: {KEY}")
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path)],
        env=environment("http://127.0.0.1:1", tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert "RuntimeError: in a thread: ***" in told[0]["exception"]
    assert "a warning with ***" in told[1]["event"]
    assert "in the loop: ***" in told[2]["event"]
    assert "RuntimeError: at last: ***" in told[3]["exception"]


def test_a_pipe_that_is_not_read_stops_nothing_and_what_was_lost_is_reported_later() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as pipe, os.fdopen(writing, "w", encoding="utf-8") as stream:
        logging.getLogger().handlers.clear()
        configure_logs("INFO", "json", Redactor([KEY]), stream=stream)
        count = QUEUE_RECORDS + 2_000
        for _ in range(count):
            logging.getLogger("any").info("%s", KEY)
        read: list[dict[str, str]] = []
        lost = 0
        while len(read) + lost < count:
            line = json.loads(pipe.readline())
            if line["logger"] == "maniple.telemetry.logs":
                lost += int(line["event"].split()[0])
            else:
                read.append(line)
        assert lost > 0
        assert all(line["event"] == "***" for line in read)


def test_a_program_with_an_unread_log_pipe_ends(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("""
import logging
from maniple.telemetry import logs
from maniple.redaction import Redactor
logs.configure_logs("INFO", "json", Redactor())
for number in range(2_000): logging.getLogger("any").info("word " * 20)
print("done", flush=True)
""")
    env = environment("http://127.0.0.1:1", tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, str(path)], env=env, stdout=pipe, stderr=pipe) as program:
        try:
            assert program.wait(30) == 0
            assert program.stdout is not None
            assert program.stdout.read() == b"done\n"
        finally:
            program.kill()


@pytest.mark.anyio
async def test_uvicorns_requests_go_the_same_way() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    stream = configured()
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/?key={KEY}"
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", ws="none", log_config=None))
    serving = asyncio.create_task(server.serve([listener]))
    async with httpx.AsyncClient() as client:
        assert (await client.get(url)).status_code == 204
    server.should_exit = True
    await serving
    told = [line for line in lines(stream) if line["logger"] == "uvicorn.access"]
    assert '"GET /?key=*** HTTP/1.1" 204' in told[0]["event"]
    assert "0123456789" not in written_to(stream)


def test_an_unwritable_log_file_neither_prints_nor_stops_anything(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    logging.getLogger().handlers.clear()
    configure_logs("INFO", "console", Redactor([KEY]), stream=tmp_path / "file" / "chat.log")
    logging.getLogger("a").warning("lost")
    assert capfd.readouterr() == ("", "")
    configure_logs("INFO", "console", Redactor([KEY]), stream=tmp_path / "logs" / "chat.log")
    logging.getLogger("a").warning("kept, without %s", KEY)
    assert "kept, without ***" in (tmp_path / "logs" / "chat.log").read_text(encoding="utf-8")


def test_what_clients_can_repeat_is_logged_a_few_times_and_counted() -> None:
    now = 0.0
    limit = RepeatFilter(lambda: now)

    def passes(text: str, *args: object) -> str | None:
        record = logging.LogRecord("asyncio", logging.ERROR, __file__, 1, text, args, None)
        return record.getMessage() if limit.filter(record) else None

    seen = [passes("%s is out of files", number) for number in range(REPEATS + 5)]
    assert seen == [*(f"{number} is out of files" for number in range(REPEATS)), *[None] * 5]
    assert passes("something else") == "something else"
    now = REPEAT_SECONDS
    later = passes("%s is out of files", 99)
    assert later is not None
    assert later.startswith("99 is out of files (5 ")
    assert passes("%s is out of files", 100) == "100 is out of files"


def test_the_log_counts_what_clients_can_repeat_and_nothing_else() -> None:
    log = configured()
    configured_again = configured()
    for name in ("asyncio", "uvicorn.error", "maniple.runs"):
        for _ in range(REPEATS + 5):
            logging.getLogger(name).warning("again")
    flush_logs()
    counts = [
        configured_again.getvalue().count(f'"{name}"')
        for name in ("asyncio", "uvicorn.error", "maniple.runs")
    ]
    assert (log.getvalue(), counts) == ("", [REPEATS, REPEATS, REPEATS + 5])

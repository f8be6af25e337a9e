"""The process that browser-use runs in, seen from here."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from maniple.errors import BrowserError

_WORKER = Path(__file__).with_name("worker.py")
_START_SECONDS = 60.0
_MOST_BYTES = 16_000_000
_NO_ANSWER = "browser-use gave no answer; look at the page before you go on."
# Nothing of the server's own environment: it reads keys from there, and `.env` files where it stands.
_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "ANONYMIZED_TELEMETRY": "false",
    "BROWSER_USE_CLOUD_SYNC": "false",
    "BROWSER_USE_VERSION_CHECK": "false",
    "BROWSER_USE_SETUP_LOGGING": "false",
    "PYTHON_DOTENV_DISABLED": "1",
}


class Eyes:
    """browser-use beside the Chromium whose DevTools are on `port`; started when needed, also once more."""

    def __init__(self, port: int, width: int, height: int) -> None:
        self._port = port
        self._size = (str(width), str(height))
        self._lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._folder = ""
        self._asked = 0

    async def ask(self, what: str, seconds: float, **fields: Any) -> dict[str, Any]:
        """Return its answer to a request; raises `BrowserError` when none comes."""
        async with self._lock:
            try:
                return await self._asked_once(what, seconds, fields)
            except (OSError, EOFError) as error:
                # It ended before or while it was asked; to look once more does no harm.
                if what != "look":
                    raise BrowserError(_NO_ANSWER) from error
            try:
                return await self._asked_once(what, seconds, fields)
            except (OSError, EOFError) as error:
                raise BrowserError(_NO_ANSWER) from error

    async def _asked_once(self, what: str, seconds: float, fields: Mapping[str, Any]) -> dict[str, Any]:
        process = await self._started()
        self._asked += 1
        line = json.dumps({"id": self._asked, "what": what, **fields})
        try:
            async with asyncio.timeout(seconds):
                return await _answer(process, self._asked, line)
        except (TimeoutError, ValueError) as error:
            await self._end()
            raise BrowserError(_NO_ANSWER) from error
        except (OSError, EOFError):
            await self._end()
            raise

    async def aclose(self) -> None:
        """End the process."""
        async with self._lock:
            await self._end()

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        self._folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-browser-use-")
        environment = {**_ENVIRONMENT, "HOME": self._folder, "BROWSER_USE_CONFIG_DIR": self._folder}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(_WORKER),
            f"http://127.0.0.1:{self._port}",
            *self._size,
            cwd=self._folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MOST_BYTES,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _answer(self._process, 0)
        except (TimeoutError, OSError, ValueError, EOFError) as error:
            await self._end()
            raise BrowserError("browser-use did not start beside Chromium; try again.") from error
        return self._process

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
        if self._folder:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self._folder = ""


async def _answer(process: asyncio.subprocess.Process, number: int, line: str = "") -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        process.stdin.write(line.encode() + b"\n")
        await process.stdin.drain()
    while told := await process.stdout.readline():
        answer = json.loads(told)
        # One to a request that was given up may come first.
        if answer["id"] == number:
            return answer
    raise EOFError

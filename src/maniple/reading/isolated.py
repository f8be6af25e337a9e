"""Reading in a process that can be ended.

Large libraries may take for ever over a hostile file, and a page of 5 MB may take half a gigabyte.
"""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE

from maniple.reading.result import Reading, Unreadable

_TIMEOUT_SECONDS = 20


async def read_isolated(kind: str, body: bytes, url: str, charset: str | None) -> Reading:
    """What `read_as` makes of the document, in a process of its own.

    Raises:
        Unreadable: nothing can be made of it in twenty seconds and 1 GB.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "maniple.reading.worker", kind, url, charset or ""),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            printed, _ = await process.communicate(body)
    except TimeoutError as error:
        raise Unreadable("takes too long to be read") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise Unreadable("cannot be read; it may be damaged")
    answer = json.loads(printed)
    if "error" in answer:
        raise Unreadable(answer["error"])
    return Reading(**answer)

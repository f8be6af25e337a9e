"""How long calls of an MCP server on stdio take: `python -m bench.mcp_calls`."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path

from tests.mcp.open_servers import misbehaving, opened

ROUNDS = 9


async def measure() -> dict[str, float]:
    """Call the server of the tests; of nine rounds the median, of stalls of the event loop the worst."""
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder), {"bad": misbehaving(timeout_seconds=60)}) as servers:
            calls = [await _milliseconds(servers.call("bad__echo", text="x")) for _ in range(ROUNDS)]
            together = [
                await _milliseconds(
                    asyncio.gather(*(servers.call("bad__echo", text="x") for _ in range(100)))
                )
                for _ in range(ROUNDS)
            ]
            ticking = asyncio.create_task(_longest_stall())
            await asyncio.sleep(0)
            long = [await _milliseconds(servers.call("bad__big")) for _ in range(ROUNDS)]
            ticking.cancel()
            stall = await ticking
    return {
        "mcp_call_ms": sorted(calls)[ROUNDS // 2],
        "mcp_100_calls_ms": sorted(together)[ROUNDS // 2],
        "mcp_5_mb_ms": sorted(long)[ROUNDS // 2],
        "mcp_5_mb_stall_ms": stall,
    }


async def _milliseconds(call: Awaitable[object]) -> float:
    began = time.perf_counter()
    await call
    return (time.perf_counter() - began) * 1_000


async def _longest_stall() -> float:
    """Return by how many milliseconds the event loop was late at most, until it is cancelled."""
    longest = 0.0
    try:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, (time.perf_counter() - began) * 1_000 - 1)
    except asyncio.CancelledError:
        return longest


if __name__ == "__main__":
    for name, value in asyncio.run(measure()).items():
        print(f"{name} {value:.1f}")

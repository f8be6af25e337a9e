import asyncio, time
import pytest
from tests.runs.test_asking_meanwhile import *
async def test_tmp(tmp_path):
    t=time.monotonic()
    def p(x): print(f"{time.monotonic()-t:7.2f} {x}", flush=True)
    async with working(tmp_path, script()) as it:
        await it.begin(); p("begun")
        [question] = await it.asked(); p("asked")
        given = await asyncio.gather(
            it.answer("2023", question), it.answer("2024", question), return_exceptions=True
        )
        p(given)
        it.gate.set()
        await it.ended(); p("ended")
        for e in it.events: print(e.type, end=" ")
    p("closed")

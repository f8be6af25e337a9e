"""Write the streams that the page's own tests read: `python -m tests.page.record`."""

import asyncio
import json
import tempfile
from pathlib import Path

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, reply, serving
from tests.page.streams import FOLDER, Event, events, recorded_streams
from tests.runs.killing import Mortal
from tests.serving import environment


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        async for name, stream in recorded_streams(Path(home)):
            _write(name, stream)
    with tempfile.TemporaryDirectory() as home:
        _write("killed-and-resumed", await _killed(Path(home)))


async def _killed(home: Path) -> list[Event]:
    with serving({**SIMPLE, "coder": [{"hang": True}]}) as model:
        async with Mortal(environment(model.base_url, home), home) as server:
            async with server.client() as client:
                thread = (await client.post("/api/threads")).json()["thread_id"]
                body = {"input": "1+3=?"}
                run = (await client.post(f"/api/threads/{thread}/runs", json=body)).json()["run_id"]
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1, 60)
            await server.kill()
            model.reset({**SIMPLE, "reporter": [reply("# Back again\n\nIt is **4**.")]})
            await server.start()
            async with server.client() as client:
                return events(numbered((await client.get(f"/api/runs/{run}/events?view=live")).text))


def _write(name: str, stream: list[Event]) -> None:
    text = "[\n" + ",\n".join(json.dumps(event, ensure_ascii=False) for event in stream) + "\n]\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    asyncio.run(main())

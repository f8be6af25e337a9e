"""Write the streams that the page's own tests read: `python -m tests.page.record` (into `web/tests/streams`).

Each is the stream of a scripted run as the service tells it, with its random names replaced.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.api.inside import Inside, inside, numbered
from tests.api.test_golden import _UUID
from tests.openai_server import SIMPLE, call, reply, serving
from tests.serving import ROOT

FOLDER = ROOT / "web/tests/streams"
SCRIPTS: dict[str, dict[str, Any]] = {
    "workflow": {"reporter": [reply("# Report\n\nIt is **4**.", reasoning="How to say it?")]},
    "small-talk": {"coordinator": [reply("Hello! How are you?")]},
    "bad-plan": {"planner": [reply("no plan"), reply("still none")]},
    "model-error": {"reporter": [{"status": 500, "error": "broken"}]},
    "tool-that-raises": {"coder": [call("python_repl_tool", code="boom"), reply("It did not work.")]},
}


async def main() -> None:
    with serving(SIMPLE) as model, tempfile.TemporaryDirectory() as home:
        async with inside(model.base_url, Path(home), sandbox={}) as it:
            for name, script in SCRIPTS.items():
                model.reset({**SIMPLE, **script})
                _write(name, await _stream(it, (await it.run())["run_id"]))
            model.reset(SIMPLE)
            run = (await it.run(auto_accepted_plan=False))["run_id"]
            await _stream(it, run)
            await it.client.post(f"/api/runs/{run}/resume", json={"answer": "accept"})
            _write("plan-review", await _stream(it, run))


async def _stream(it: Inside, run_id: str) -> str:
    return (await it.client.get(f"/api/runs/{run_id}/events")).text


def _write(name: str, stream: str) -> None:
    seen: dict[str, str] = {}
    events = [{"id": number, "type": kind, **data} for number, (kind, data) in numbered(stream)]
    for event in events:
        if "seconds" in event:
            event["seconds"] = 0.5
    text = "[\n" + ",\n".join(json.dumps(event, ensure_ascii=False) for event in events) + "\n]\n"
    text = _UUID.sub(lambda match: seen.setdefault(match.group(), f"id{len(seen) + 1}"), text)
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    asyncio.run(main())

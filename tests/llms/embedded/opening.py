"""Another process that keeps the embedded model open: `python -m tests.llms.embedded.opening`."""

import asyncio
import sys

from maniple.config.settings import EmbeddedSettings, Settings
from maniple.llms.embedded import SilentProgress, open_embedded


async def main() -> None:
    settings = EmbeddedSettings(context_tokens=1024, parallel=1)
    async with open_embedded(settings, Settings().cache_dir, SilentProgress()) as endpoint:
        print(endpoint.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(main())

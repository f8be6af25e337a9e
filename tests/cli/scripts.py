"""The scripted models' calls, and the paths of the scripts."""

import asyncio

from tests.openai_server import SIMPLE, OpenAIServer, call, reply

REPORT = "# What is 1 + 3?\n\nThe answer is **4**.\n"
"""What `SIMPLE` comes to."""
HANGING = {
    **SIMPLE,
    "coder": [call("python_repl_tool", code="print(1+3)"), {"hang": True}, reply("1 + 3 = 4")],
}


async def hangs(server: OpenAIServer) -> None:
    """Wait until the coder has used its tool and waits for its model."""
    await asyncio.to_thread(
        server.wait_for, lambda stats: stats["by_role"].get("coder") == 2 and stats["active"] == 1, 100
    )

"""The graph as `langgraph dev` and LangGraph Studio load it (`langgraph.json`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maniple.config import load_settings
from maniple.graph import Team
from maniple.runtime.compose import open_team


@asynccontextmanager
async def team() -> AsyncIterator[Team]:
    """Open the team with the settings of the working directory; the server brings the checkpointer."""
    async with open_team(await asyncio.to_thread(load_settings)) as graph:
        yield graph

"""The recording of a call of the browser, kept with the run's files."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from maniple.agents.run_scope import run_scope
from maniple.browser.recording import Frame, record

PART_SECONDS = 5.0
"""How long a run that is paused or cancelled may be kept waiting for its recording."""


async def keep_recording(frames: Sequence[Frame]) -> str | None:
    """Return the path of a GIF of the frames, for clients of the run; None where none was made or kept."""
    keep_file = run_scope().keep_file
    if keep_file is None or not frames:
        return None
    gif = await record(frames)
    artifact_id = await keep_file("recording.gif", "image/gif", gif) if gif is not None else None
    return f"/api/browser_history/{artifact_id}.gif" if artifact_id else None


async def keep_part(frames: Sequence[Frame]) -> None:
    """Keep what there is of a recording whose call is paused or ends without an answer.

    The pictures are in this process alone; after a pause the rest becomes a recording of its own.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(PART_SECONDS):
            await keep_recording(frames)

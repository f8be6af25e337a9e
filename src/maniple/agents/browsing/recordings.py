"""The recording of a call of the browser, kept with the run's files."""

from collections.abc import Sequence

from maniple.agents.scope import run_scope
from maniple.browser.recording import Frame, record


async def keep_recording(frames: Sequence[Frame]) -> str | None:
    """Return the path of a GIF of the frames, for clients of the run; None where none was made or kept."""
    keep_file = run_scope().keep_file
    if keep_file is None or not frames:
        return None
    gif = await record(frames)
    artifact_id = await keep_file("recording.gif", "image/gif", gif) if gif is not None else None
    return f"/api/browser_history/{artifact_id}.gif" if artifact_id else None

"""The pictures of a run, as they can stand within its page."""

import asyncio
import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from maniple.errors import FileError
from maniple.store import Artifact, Store

MOST_BYTES = 16_000_000
"""Of all of them together; those that come first have their place first."""
RECORDING = "recording.gif"
_BEGINNINGS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures as `data:` addresses."""

    by_artifact: Mapping[str, str]
    recordings: tuple[str, ...]


async def pictures_of(
    store: Store, artifacts: Collection[Artifact], screenshots: Collection[str]
) -> Pictures:
    """Return the recordings among a run's artifacts, and its `screenshots`, which are ids of others.

    What is gone, is no picture or finds no more room is left out.
    """
    found: dict[str, str] = {}
    recordings: list[str] = []
    left = MOST_BYTES
    wanted = set(screenshots)
    for one in sorted(artifacts, key=lambda one: one.name != RECORDING):
        if (one.name != RECORDING and one.artifact_id not in wanted) or one.size > left:
            continue
        picture = await picture_of(store, one)
        if picture is None:
            continue
        left -= one.size
        if one.name == RECORDING:
            recordings.append(picture)
        else:
            found[one.artifact_id] = picture
    return Pictures(found, tuple(recordings))


async def picture_of(store: Store, artifact: Artifact) -> str | None:
    """Return a picture as a `data:` address; None for what is gone or is none."""
    beginning = _BEGINNINGS.get(artifact.media_type)
    if beginning is None:
        return None
    try:
        path = await store.artifacts.open(artifact)
        content = await asyncio.to_thread(path.read_bytes)
    except (FileError, OSError):
        return None
    if not content.startswith(beginning):
        return None
    return f"data:{artifact.media_type};base64,{base64.b64encode(content).decode()}"

"""What a file holds beside the events, by the address that they name: pictures, and the sources."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict

from maniple.replay.telling import embedded
from maniple.run_page.pictures import picture_of
from maniple.store import Artifact, RunRecord, Store

LARGEST_PICTURE = 1_000_000
"""Bytes."""
MOST_PICTURES = 20_000_000
"""Bytes, of all together."""
_SCREENSHOT = "screenshot.jpg"


class Enclosures:
    """Writes what belongs to one run. `left_out` counts the pictures for which there was no room."""

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.left_out = 0
        self._store = store
        self._run = run

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield a line of JSON for each: its `path` at the service, and its content as a `data:` address."""
        yield _line(f"/api/runs/{self._run.run_id}/sources", await self._sources())
        left = MOST_PICTURES
        for one in _by_weight(await self._store.artifacts.of_run(self._run.run_id)):
            if one.size > min(left, LARGEST_PICTURE):
                self.left_out += 1
            elif picture := await picture_of(self._store, one):
                left -= one.size
                yield await asyncio.to_thread(_line, f"/api/artifacts/{one.artifact_id}", picture)

    async def _sources(self) -> str:
        sources = await self._store.evidence(self._run.run_id).sources()
        content = json.dumps({"sources": [asdict(source) for source in sources]}).encode()
        return f"data:application/json;base64,{base64.b64encode(content).decode()}"


def _by_weight(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the pictures: those that the team made before what the browser showed, each newest first."""
    pictures = [one for one in reversed(artifacts) if one.media_type.startswith("image/")]
    return sorted(pictures, key=lambda one: one.name == _SCREENSHOT)


def _line(path: str, content: str) -> bytes:
    return embedded(json.dumps({"path": path, "content": content})) + b"\n"

"""What a file holds beside the events, by the address that they name: pictures, sources, what was used."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from maniple.replay.telling import embedded
from maniple.run_page.pictures import Figure, picture_of
from maniple.store import Artifact, RunRecord, Store

LARGEST_PICTURE = 1_000_000
"""Bytes."""
MOST_PICTURES = 20_000_000
"""Bytes, of all together."""
_SCREENSHOT = "screenshot.jpg"


class Enclosures:
    """Writes what belongs to one run, and `known`, which the service would answer about it.

    `left_out` counts the pictures for which there was no room.
    """

    def __init__(
        self, store: Store, run: RunRecord, known: Mapping[str, Any], figures: Collection[Figure] = ()
    ) -> None:
        self.left_out = 0
        self._store = store
        self._run = run
        self._known = known
        self._figures = figures

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield a line of JSON for each: its `path` at the service, and its content as a `data:` address."""
        path = f"/api/runs/{self._run.run_id}"
        yield _line(path, _json(self._known))
        sources = await self._store.evidence(self._run.run_id).sources()
        yield _line(f"{path}/sources", _json({"sources": [asdict(source) for source in sources]}))
        left = MOST_PICTURES
        for figure in self._figures:
            if len(figure.content) > left:
                self.left_out += 1
                continue
            left -= len(figure.content)
            yield await asyncio.to_thread(_line, f"{path}/figures/{_quoted(figure.path)}", figure.data_url)
        for one in _by_weight(await self._store.artifacts.list_by_run(self._run.run_id)):
            if one.size > min(left, LARGEST_PICTURE):
                self.left_out += 1
            elif picture := await picture_of(self._store, one):
                left -= one.size
                yield await asyncio.to_thread(_line, f"/api/artifacts/{one.artifact_id}", picture)


def _by_weight(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return the pictures: those that the team made before what the browser showed, each newest first."""
    pictures = [one for one in reversed(artifacts) if one.media_type.startswith("image/")]
    return sorted(pictures, key=lambda one: one.name == _SCREENSHOT)


def _quoted(path: str) -> str:
    """Return a path as the page asks for it: as `encodeURIComponent` writes each of its parts."""
    return quote(path, safe="/!'()*")


def _json(value: Mapping[str, Any]) -> str:
    return f"data:application/json;base64,{base64.b64encode(json.dumps(value).encode()).decode()}"


def _line(path: str, content: str) -> bytes:
    return embedded(json.dumps({"path": path, "content": content})) + b"\n"

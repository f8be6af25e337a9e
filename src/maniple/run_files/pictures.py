"""The pictures of a run as `data:` URLs, and the figures of its report."""

import asyncio
import base64
import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from maniple.errors import FileError
from maniple.reading.pictures import PictureInfo, figure_path, identify_picture
from maniple.store import Artifact, RunRecord, Store
from maniple.workspace import Workspaces

RECORDING = "recording.gif"
_BEGINNINGS = {
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}


async def load_picture(store: Store, artifact: Artifact) -> str | None:
    """Return a picture as a `data:` URL; None if it was deleted or is not a picture."""
    beginning = _BEGINNINGS.get(artifact.media_type)
    if beginning is None:
        return None
    try:
        content = await (await store.artifacts.open(artifact)).read()
    except FileError:
        return None
    if not content.startswith(beginning):
        return None
    return f"data:{artifact.media_type};base64,{base64.b64encode(content).decode()}"


MAX_FIGURES = 40
MAX_FIGURE_BYTES = 5_000_000
MAX_FIGURES_BYTES = 20_000_000
"""The limit of all figures of a report together."""
MAX_FIGURE_PIXELS = 50_000_000


@dataclass(frozen=True)
class Figure:
    """A picture that a report shows; `path` is its path in the thread's workspace."""

    path: str
    content: bytes
    info: PictureInfo

    @cached_property
    def data_url(self) -> str:
        """The picture as a `data:` URL."""
        return f"data:{self.info.media_type};base64,{base64.b64encode(self.content).decode()}"


def figure_address(run_id: str, path: str) -> str:
    """Return the address of a figure at the service: each part encoded as by `encodeURIComponent`."""
    quoted = quote(path, safe="/!'()*")
    return f"/api/runs/{run_id}/figures/{quoted}"


@dataclass(frozen=True, slots=True)
class FigureFinder:
    """Finds the figures of one run's report, and the files that it links to, in its thread.

    Each is an artifact of the run, else of an earlier run, else a file of the workspace, which may have
    changed since the run. The content decides whether a file is a picture.
    """

    store: Store
    workspaces: Workspaces
    run: RunRecord

    async def find_all(self, targets: Iterable[str]) -> dict[str, Figure]:
        """Return the figures that the image `targets` name, by path, up to the limits of a report.

        Raises:
            StoreError: the artifacts cannot be listed.
        """
        found = await self._find_all(targets, lambda content: _figure("", content) is not None)
        return {path: figure for path, content in found.items() if (figure := _figure(path, content))}

    async def find_files(self, targets: Iterable[str]) -> dict[str, bytes]:
        """Return the content of the files that the links `targets` name, by path, up to the same limits.

        Raises:
            StoreError: the artifacts cannot be listed.
        """
        return await self._find_all(targets, bool)

    async def _find_all(self, targets: Iterable[str], is_wanted: Callable[[bytes], bool]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        left = MAX_FIGURES_BYTES
        paths = list(dict.fromkeys(filter(None, map(figure_path, targets))))[:MAX_FIGURES]
        artifacts = await self._artifacts() if paths else []
        for path in paths:
            content = await self._find(path, artifacts, is_wanted)
            if content is not None and len(content) <= left:
                left -= len(content)
                found[path] = content
        return found

    async def _artifacts(self) -> list[Artifact]:
        """Return the artifacts that existed when the run ended: first its own, then others, newest first."""
        until = self.run.ended_at
        known = [
            one
            for one in await self.store.artifacts.list_by_thread(self.run.thread_id)
            if one.size <= MAX_FIGURE_BYTES
            and (one.run_id == self.run.run_id or until is None or one.created_at <= until)
        ]
        known.sort(key=lambda one: (one.run_id == self.run.run_id, one.created_at), reverse=True)
        return known

    async def _find(
        self, path: str, artifacts: Collection[Artifact], is_wanted: Callable[[bytes], bool]
    ) -> bytes | None:
        file = await asyncio.to_thread(self._read_file, path)
        digest = hashlib.sha256(file).hexdigest()
        named = [one for one in artifacts if one.name == path.rpartition("/")[2]]
        # Files in several folders may have the same name; their content distinguishes them.
        same = [one for one in artifacts if one.sha256 == digest] if file else []
        own = [one for one in named if one.run_id == self.run.run_id]
        for one in [*(same or own or named), *named]:
            if is_wanted(content := await self.read_artifact(one)):
                return content
        return file if is_wanted(file) else None

    async def read_artifact(self, artifact: Artifact) -> bytes:
        """Return the content of an artifact; empty if it was deleted."""
        try:
            return await (await self.store.artifacts.open(artifact)).read()
        except FileError:
            return b""

    def _read_file(self, path: str) -> bytes:
        try:
            head = self.workspaces.locate(self.run.thread_id).read(path, MAX_FIGURE_BYTES)
        except FileError:
            return b""
        return head.content if head.size == len(head.content) else b""


def _figure(path: str, content: bytes) -> Figure | None:
    picture = identify_picture(content)
    if picture is None or picture.width * picture.height > MAX_FIGURE_PIXELS:
        return None
    return Figure(path, content, picture)

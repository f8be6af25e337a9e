"""The files that a run leaves in its thread's workspace, kept as artifacts for its clients."""

import asyncio
import hashlib
import logging
import mimetypes
from collections.abc import AsyncIterator
from dataclasses import dataclass

from maniple.errors import FileError, StoreError
from maniple.events import ArtifactMade
from maniple.redaction import Redactor
from maniple.sandbox import Workspace, Workspaces
from maniple.store import Artifact, RunRecord, Store

MOST_FILES = 100
MOST_BYTES = 100_000_000
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outputs:
    """Keeps what is new in the workspaces."""

    store: Store
    workspaces: Workspaces
    redactor: Redactor

    async def collect(self, run: RunRecord) -> AsyncIterator[ArtifactMade]:
        """Keep each file that no run of the thread has left before with the same content, and tell of it.

        What is as the user uploaded it is none. A run's end does not depend on it: what cannot be kept is
        logged and stays in the workspace.
        """
        try:
            given = await asyncio.to_thread(self.workspaces.uploads(run.thread_id).known)
            most = MOST_FILES + len(given)
            files = await asyncio.to_thread(self.workspaces.files, run.thread_id, most)
            earlier = await self.store.artifacts.of_thread(run.thread_id) if files.found else []
            known = {(artifact.name, artifact.sha256) for artifact in earlier}
            uploads = {(upload.path, upload.sha256) for upload in given}
            workspace = Workspace(files.folder, MOST_BYTES)
            left = MOST_BYTES
            for path, size in files.found:
                if "__pycache__" in path.split("/") or size > left:
                    continue
                content = await _content(workspace, path, left)
                if content is None or (path, _sha256(content)) in uploads:
                    continue
                left -= len(content)
                if artifact := await self._keep(run, path, content, known):
                    yield _made(artifact)
        except (FileError, StoreError) as error:
            _LOG.warning("Not every file of the run could be kept: %s", error)

    async def _keep(
        self, run: RunRecord, path: str, content: bytes, known: set[tuple[str, str]]
    ) -> Artifact | None:
        content = self.redactor.same_length(content)
        name = self.redactor.text(path.rpartition("/")[2])
        if (name, _sha256(content)) in known:
            return None
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return await self.store.artifacts.add(run, name, media_type, content)


async def _content(workspace: Workspace, path: str, most_bytes: int) -> bytes | None:
    """Return what a file holds; None for one that has grown meanwhile, or is none of an ordinary kind."""
    try:
        head = await asyncio.to_thread(workspace.read, path, most_bytes)
    except FileError as error:
        _LOG.warning("A file of the run could not be kept: %s", error)
        return None
    return head.content if head.size == len(head.content) else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _made(artifact: Artifact) -> ArtifactMade:
    return ArtifactMade(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        media_type=artifact.media_type,
        size=artifact.size,
        url=f"/api/artifacts/{artifact.artifact_id}",
    )

"""The files that a run leaves in its thread's workspace, kept as artifacts for its clients."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncGenerator, Set
from dataclasses import dataclass, field

from maniple.errors import FileError, StoreError
from maniple.events import ArtifactCreated
from maniple.media_types import media_type_of
from maniple.redaction import Redactor
from maniple.sandbox import Workspace, Workspaces
from maniple.store import Artifact, RunRecord, Store

MOST_FILES = 100
LOOKED_AT_FILES = 10_000
MOST_BYTES = 100_000_000
_LOG = logging.getLogger(__name__)

Stamp = tuple[str, int, int]
"""A file as it was: path, bytes, time of its last change in nanoseconds."""


@dataclass(slots=True)
class Share:
    """What a run may still keep, the files that were looked at, as they were then, and the paths `told` of.

    A path that was told of is not told of again: a file that grows with each call would fill the share with
    its drafts.
    """

    files: int = MOST_FILES
    bytes: int = MOST_BYTES
    seen: set[Stamp] = field(default_factory=set)
    told: set[str] = field(default_factory=set)

    @classmethod
    def half(cls) -> "Share":
        """Return what a run may keep while it goes on, so that something is left for its end."""
        return cls(MOST_FILES // 2, MOST_BYTES // 2)

    def complete(self) -> None:
        """Add the other half; each path may be told of once more, as it is in the end."""
        self.files += MOST_FILES // 2
        self.bytes += MOST_BYTES // 2
        self.told.clear()


@dataclass(frozen=True, slots=True)
class Outputs:
    """Keeps what is new in the workspaces: of all runs one file at a time, for it is in memory meanwhile."""

    store: Store
    workspaces: Workspaces
    redactor: Redactor
    _one_file: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def collect(self, run: RunRecord, share: Share | None = None) -> AsyncGenerator[ArtifactCreated]:
        """Keep each file that no run of the thread has left before with the same content, and tell of it.

        Of many files the newest are kept. What is as the user uploaded it is none. The end of a run does not
        depend on it: what cannot be kept is logged and stays in the workspace. `share` is what earlier looks
        of the run have left over.
        """
        share = share or Share()
        try:
            given = await asyncio.to_thread(self.workspaces.uploads(run.thread_id).list_uploads)
            workspace = await asyncio.to_thread(self._workspace, run.thread_id)
            newest = await asyncio.to_thread(_newest, workspace, MOST_FILES + len(given), share.seen)
            earlier = await self.store.artifacts.list_by_thread(run.thread_id) if newest else []
            known = {(artifact.name, artifact.sha256) for artifact in earlier}
            uploads = {(upload.path, upload.sha256) for upload in given}
            left = MOST_BYTES
            for stamp in newest:
                path, size, _ = stamp
                if size > min(left, share.bytes) or not share.files or path in share.told:
                    continue
                async with self._one_file:
                    file = await asyncio.to_thread(self._read, workspace, path, size)
                    share.seen.add(stamp)
                    if file is None or (path, file.sha256) in uploads:
                        continue
                    left -= len(file.content)
                    artifact = await self._keep(run, path, file, known)
                    del file
                if artifact:
                    share.files, share.bytes = share.files - 1, share.bytes - artifact.size
                    share.told.add(path)
                    yield made(artifact)
        except (FileError, StoreError) as error:
            _LOG.warning("Not every file of the run could be kept: %s", error)

    def _workspace(self, thread_id: str) -> Workspace:
        return Workspace(self.workspaces.locate(thread_id).path, MOST_BYTES)

    def _read(self, workspace: Workspace, path: str, size: int) -> "_File | None":
        """Return what is in a file; None for one that has grown, or is none of an ordinary kind. Blocks."""
        try:
            head = workspace.read(path, size)
        except FileError as error:
            _LOG.warning("A file of the run could not be kept: %s", error)
            return None
        if head.size != len(head.content):
            return None
        masked = self.redactor.same_length(head.content)
        sha256 = hashlib.sha256(head.content).hexdigest()
        same = masked is head.content
        return _File(masked, sha256, sha256 if same else hashlib.sha256(masked).hexdigest())

    async def _keep(
        self, run: RunRecord, path: str, file: "_File", known: set[tuple[str, str]]
    ) -> Artifact | None:
        name = self.redactor.text(path.rpartition("/")[2])
        if (name, file.masked_sha256) in known:
            return None
        return await self.store.artifacts.add(run, name, media_type_of(name), file.content)


@dataclass(frozen=True, slots=True)
class _File:
    """A file without secrets, and the SHA-256 in hex of what it was and is."""

    content: bytes
    sha256: str
    masked_sha256: str


def _newest(workspace: Workspace, most: int, seen: Set[Stamp]) -> list[Stamp]:
    """Return the files that changed last, but those that are `seen`, by their paths. Blocks on disk."""
    found = workspace.list_newest(LOOKED_AT_FILES)
    made = [stamp for stamp in found if "__pycache__" not in stamp[0].split("/")]
    if len(made) > most and not seen:
        _LOG.warning("There are %s files; the %s newest are kept as artifacts.", len(made), most)
    return sorted(stamp for stamp in made[:most] if stamp not in seen)


def made(artifact: Artifact) -> ArtifactCreated:
    """Return the event that tells of an artifact."""
    return ArtifactCreated(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        media_type=artifact.media_type,
        size=artifact.size,
        url=f"/api/artifacts/{artifact.artifact_id}",
    )

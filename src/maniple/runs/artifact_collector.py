"""Stores the files that a run produces as artifacts: workspace files, pages, and pictures of the browser."""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Set
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from maniple.errors import FileError, StoreError
from maniple.events import ArtifactCreated, read_event
from maniple.evidence import Source, find_newest_text
from maniple.media_types import media_type_of
from maniple.redaction import Redactor
from maniple.runs.active_run import ActiveRun
from maniple.runs.event_log import Recorder
from maniple.store import Artifact, RunRecord, Store, read_event_pages
from maniple.tools.items import is_drawn_figure
from maniple.workspace import Workspace, Workspaces, is_cache
from maniple.workspace.mirrors import is_team_record

MAX_WORKSPACE_FILES = 100
MAX_SCANNED_FILES = 10_000
MAX_WORKSPACE_BYTES = 100_000_000
_LOG = logging.getLogger(__name__)

Stamp = tuple[str, int, int]
"""The version of a file: path, size in bytes, time of its last change in nanoseconds."""

Content = tuple[str, str]
"""What an artifact holds: its name, and the SHA-256 (hex) of its bytes."""


@dataclass(slots=True)
class ArtifactQuota:
    """The remaining quota of a run, the scanned file versions (`seen`), and the reported paths (`reported`).

    A path is reported once, because a file that grows with each call would use up the quota with its drafts.
    `holders` are the paths that have a content under a name: more than there are artifacts are copies.
    """

    files: int = MAX_WORKSPACE_FILES
    bytes: int = MAX_WORKSPACE_BYTES
    seen: set[Stamp] = field(default_factory=set[Stamp])
    reported: set[str] = field(default_factory=set[str])
    holders: dict[Content, set[str]] = field(default_factory=dict[Content, set[str]])

    @classmethod
    def half(cls) -> "ArtifactQuota":
        """Return the half that a run may use before its end."""
        return cls(MAX_WORKSPACE_FILES // 2, MAX_WORKSPACE_BYTES // 2)

    def complete(self) -> None:
        """Add the other half; each path may be reported once more, in its final version."""
        self.files += MAX_WORKSPACE_FILES // 2
        self.bytes += MAX_WORKSPACE_BYTES // 2
        self.reported.clear()


@dataclass(frozen=True, slots=True)
class WorkspaceCollector:
    """Stores new workspace files as artifacts: one file at a time for all runs, to limit memory."""

    store: Store
    workspaces: Workspaces
    redactor: Redactor
    _one_file: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def collect(
        self, run: RunRecord, quota: ArtifactQuota | None = None
    ) -> AsyncGenerator[ArtifactCreated]:
        """Store each file that no run of the thread has stored, and yield its event.

        A file with the name and the content of an artifact is that artifact; further ones are copies, which
        are stored as well. Left out are copies that are empty, and figures that code has also saved itself.
        If there are too many files, the newest are stored. Unchanged uploads are left out. A file that cannot
        be stored is logged and stays in the workspace; the run does not fail. `quota` is what earlier scans
        of the run have left.
        """
        quota = quota or ArtifactQuota()
        try:
            given = await asyncio.to_thread(self.workspaces.uploads(run.thread_id).list_uploads)
            workspace = await asyncio.to_thread(self._workspace, run.thread_id)
            newest = await asyncio.to_thread(
                _newest_files, workspace, MAX_WORKSPACE_FILES + len(given), quota.seen
            )
            earlier = await self.store.artifacts.list_by_thread(run.thread_id) if newest else []
            known = Counter((artifact.name, artifact.sha256) for artifact in earlier)
            uploads = {(upload.path, upload.sha256) for upload in given}
            left = MAX_WORKSPACE_BYTES
            for stamp in newest:
                path, size, _ = stamp
                if size > min(left, quota.bytes) or not quota.files or path in quota.reported:
                    continue
                async with self._one_file:
                    file = await asyncio.to_thread(self._read, workspace, path, size)
                    quota.seen.add(stamp)
                    if file is None or (path, file.sha256) in uploads:
                        continue
                    left -= len(file.content)
                    artifact = await self._store_file(run, path, file, _Known(known, quota.holders))
                    del file
                if artifact:
                    quota.files, quota.bytes = quota.files - 1, quota.bytes - artifact.size
                    quota.reported.add(path)
                    yield make_artifact_event(artifact)
        except (FileError, StoreError) as error:
            _LOG.warning("Not every file of the run could be stored: %s", error)

    def _workspace(self, thread_id: str) -> Workspace:
        return Workspace(self.workspaces.locate(thread_id).path, MAX_WORKSPACE_BYTES)

    def _read(self, workspace: Workspace, path: str, size: int) -> "_MaskedFile | None":
        """Return the content of a file; None if it has grown or is not a regular file. Blocks on disk."""
        try:
            head = workspace.read(path, size)
        except FileError as error:
            _LOG.warning("A file of the run could not be stored: %s", error)
            return None
        if head.size != len(head.content):
            return None
        masked = self.redactor.same_length(head.content)
        sha256 = hashlib.sha256(head.content).hexdigest()
        same = masked is head.content
        return _MaskedFile(masked, sha256, sha256 if same else hashlib.sha256(masked).hexdigest())

    async def _store_file(
        self, run: RunRecord, path: str, file: "_MaskedFile", known: "_Known"
    ) -> Artifact | None:
        name = self.redactor.text(path.rpartition("/")[2])
        # A figure that code saved and showed is one file, under the name that the code chose.
        is_drawn_twice = is_drawn_figure(path) and known.has_content(file.masked_sha256)
        if is_drawn_twice or not known.add(path, (name, file.masked_sha256), is_empty=not file.content):
            return None
        return await self.store.artifacts.add(run, name, media_type_of(name), file.content)


@dataclass(frozen=True, slots=True)
class _Known:
    """How many artifacts of the thread hold a content, and which paths of this run's scans have it."""

    artifacts: Counter[Content]
    holders: dict[Content, set[str]]

    def has_content(self, sha256: str) -> bool:
        """Return whether an artifact has these bytes, under any name."""
        return any(digest == sha256 for _, digest in self.artifacts)

    def add(self, path: str, content: Content, *, is_empty: bool) -> bool:
        """Add what a path holds; return whether that is a new file, for which there is no artifact yet."""
        holders = self.holders.setdefault(content, set())
        if path in holders:
            return False  # it was written again, as it was
        holders.add(path)
        # A project has many empty files of one name; they would use up the quota.
        most = 1 if is_empty else len(holders)
        if self.artifacts[content] >= most:
            return False
        self.artifacts[content] += 1
        return True


@dataclass(frozen=True, slots=True)
class _MaskedFile:
    """A file without secrets, and the SHA-256 (hex) of the original and of the masked content."""

    content: bytes
    sha256: str
    masked_sha256: str


def _newest_files(workspace: Workspace, most: int, seen: Set[Stamp]) -> list[Stamp]:
    """Return the most recently changed files that are not in `seen`, sorted by path. Blocks on disk."""
    scanned = workspace.list_newest(MAX_SCANNED_FILES)
    files = [stamp for stamp in scanned if not (is_cache(stamp[0]) or is_team_record(stamp[0]))]
    if len(files) > most and not seen:
        _LOG.warning(
            "The workspace has %s files. Only the %s newest are stored as artifacts.", len(files), most
        )
    unseen = (stamp for stamp in files[:most] if stamp not in seen)
    return sorted(unseen, key=lambda stamp: (is_drawn_figure(stamp[0]), stamp))


def make_artifact_event(artifact: Artifact, source: Source | None = None) -> ArtifactCreated:
    """Return the event that reports an artifact; `source` is the page that it is the text of."""
    return ArtifactCreated(
        artifact_id=artifact.artifact_id,
        name=artifact.name,
        media_type=artifact.media_type,
        size=artifact.size,
        url=f"/api/artifacts/{artifact.artifact_id}",
        source=source.number if source else None,
    )


@dataclass(slots=True, eq=False)
class ArtifactCollector:
    """Scans for new files after each tool call, concurrently with the run's stream, which never waits for it.

    Scans run one at a time; calls that end during a scan share the next one. A path is reported once during
    the run and, if it has changed, once at its end. Half of the quota is reserved for the end. Without
    `outputs` nothing is collected.
    """

    outputs: WorkspaceCollector | None
    active: ActiveRun
    recorder: Recorder
    _quota: ArtifactQuota = field(default_factory=ArtifactQuota.half)
    _is_wanted: bool = False
    _scanning: asyncio.Task[None] | None = None

    def schedule_scan(self) -> None:
        """Schedule a scan for new files."""
        self._is_wanted = self.outputs is not None
        if not self._is_wanted:
            return
        if self._scanning is None or self._scanning.done():
            self._scanning = asyncio.create_task(self._scan(), name="collect artifacts")

    async def finish(self) -> AsyncGenerator[ArtifactCreated]:
        """Finish the current scan, then yield the unreported files of the run's end."""
        await self._wait_for_scan()
        self._quota.complete()
        if self.outputs is not None:
            async for made in self.outputs.collect(self.active.record, self._quota):
                yield made

    async def _wait_for_scan(self) -> None:
        """Finish the current scan and do not start another."""
        self._is_wanted = False
        if self._scanning is not None:
            await asyncio.wait([self._scanning])

    async def __aenter__(self) -> "ArtifactCollector":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._scanning is not None:
            self._scanning.cancel()
        await self._wait_for_scan()

    async def _scan(self) -> None:
        # A recording error fails the run at the next event of its own stream.
        with suppress(StoreError):
            while self._is_wanted and self.outputs is not None:
                self._is_wanted = False
                async with aclosing(self.outputs.collect(self.active.record, self._quota)) as found:
                    async for made in found:
                        if self.active.is_suspended:
                            return
                        await self.active.record_event(made, self.recorder)


MAX_SAVED_FILES = 200
MAX_SAVED_BYTES = 50_000_000


@dataclass(slots=True)
class ArtifactSaver:
    """Stores files as artifacts of one run, within its quota. A failure does not affect the run."""

    store: Store
    run: RunRecord
    _files: int = MAX_SAVED_FILES
    _bytes: int = MAX_SAVED_BYTES

    async def __call__(self, name: str, media_type: str, content: bytes) -> str | None:
        """Store a file; return the artifact's id, or None if it could not be stored."""
        if self._files < 1 or len(content) > self._bytes:
            return None
        self._files, self._bytes = self._files - 1, self._bytes - len(content)
        try:
            return (await self.store.artifacts.add(self.run, name, media_type, content)).artifact_id
        except (FileError, StoreError) as error:
            _LOG.warning("A file of the run could not be stored: %s", error)
            return None


READING_TOOLS = frozenset({"crawl_tool", "browser"})
"""The tools that read pages."""
MAX_PAGES = 100
NAME_CHARACTERS = 80


@dataclass(slots=True)
class PageCollector:
    """Stores the pages of one run; each version of a page once, also after a recovery of the run.

    A page that was stored but not reported before a crash is reported after the recovery.
    """

    store: Store
    active: ActiveRun
    _seen: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    _reported: set[str] = field(default_factory=set[str])
    _log_was_read: bool = False

    async def collect_after(self, tool_name: str) -> AsyncIterator[ArtifactCreated]:
        """Store the new pages of a call and yield their events. Failures are only logged."""
        if tool_name not in READING_TOOLS or self.active.is_suspended:
            return
        try:
            sources = await self.store.evidence(self.active.record.run_id).sources()
            read = [
                one
                for one in sources
                if one.kind == "page" and not one.inherited and (one.number, one.sha256) not in self._seen
            ]
            for source in read[: max(MAX_PAGES - len(self._seen), 0)]:
                self._seen.add((source.number, source.sha256))
                content = await self._content(source)
                artifact = await self._store_page(source, content) if content is not None else None
                if artifact is not None:
                    yield make_artifact_event(artifact, source)
        except (FileError, StoreError) as error:
            _LOG.warning("Not every page of the run could be stored: %s", error)

    async def _content(self, source: Source) -> bytes | None:
        """Return the page with its address in front.

        None if the evidence record has only a part of its text.
        """
        text = await find_newest_text(self.store.evidence(self.active.record.run_id), source)
        return f"Source: {source.url}\n\n{text}".encode() if text is not None else None

    async def _store_page(self, source: Source, content: bytes) -> Artifact | None:
        """Store a page; return its artifact, or None if it was reported before."""
        run, digest = self.active.record, hashlib.sha256(content).hexdigest()
        same = [one for one in await self.store.artifacts.list_by_run(run.run_id) if one.sha256 == digest]
        if not same:
            same.append(await self.store.artifacts.add(run, page_file_name(source), "text/markdown", content))
        elif any([await self._was_reported(one) for one in same]):
            return None
        self._reported.add(same[0].artifact_id)
        return same[0]

    async def _was_reported(self, artifact: Artifact) -> bool:
        """Return whether an event has reported the artifact, also before a recovery of the run."""
        if artifact.artifact_id not in self._reported and not self._log_was_read:
            run_id, types = self.active.record.run_id, [ArtifactCreated.type]
            async for page in read_event_pages(self.store.events, run_id, types=types):
                events = [read_event(one.type, one.data) for one in page]
                self._reported |= {one.artifact_id for one in events if isinstance(one, ArtifactCreated)}
            self._log_was_read = True
        return artifact.artifact_id in self._reported


def page_file_name(source: Source) -> str:
    """Return the file name of a page: its title, or its host if it has none."""
    title = source.title if source.title != source.url else urlsplit(source.url).hostname or "page"
    return f"{title.replace('/', '-')[:NAME_CHARACTERS].strip(' .')}.md"

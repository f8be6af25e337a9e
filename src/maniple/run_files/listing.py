"""The files that a run made, by their paths in the workspace."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from maniple.errors import FileError
from maniple.run_files.pictures import RECORDING, FigureFinder
from maniple.runs.artifact_collector import (
    MAX_SCANNED_FILES,
    MAX_WORKSPACE_BYTES,
    MAX_WORKSPACE_FILES,
    page_file_name,
)
from maniple.store import Artifact
from maniple.tools.items import is_drawn_figure
from maniple.workspace import is_cache
from maniple.workspace.mirrors import is_team_record

SCREENSHOT = "screenshot.jpg"
_PAGE_START = b"Source: "


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The contents of files by path, and the paths of those that are left out."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of a run; `content` is None if it is too large, one too many, or gone."""

    path: str
    content: bytes | None


async def find_run_files(finder: FigureFinder) -> RunFiles:
    """Return what `read_run_files` yields.

    Raises:
        StoreError: the artifacts or sources cannot be listed.
    """
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    async for one in read_run_files(finder):
        if one.content is None:
            left_out.append(one.path)
        else:
            files[one.path] = one.content
    return RunFiles(files, sorted(set(left_out) - files.keys()))


async def read_run_files(finder: FigureFinder) -> AsyncGenerator[RunFile]:
    """Yield the files that the finder's run made or changed, from the artifacts, which have no secrets.

    Pages that were read and pictures of the browser are not among them. Of a file that a later run changed,
    it is the version of this run. A file without an artifact was too large or one too many.

    Raises:
        StoreError: the artifacts or sources cannot be listed.
    """
    run, store = finder.run, finder.store
    artifacts = await store.artifacts.list_by_run(run.run_id)
    workspace = await asyncio.to_thread(_list_workspace, finder)
    sources = await store.evidence(run.run_id).sources()
    pages = {page_file_name(one) for one in sources if one.kind == "page"}
    left = MAX_WORKSPACE_BYTES
    for path, artifact in await asyncio.to_thread(_place, finder, artifacts, workspace):
        if path not in workspace and artifact.name in (RECORDING, SCREENSHOT):
            continue
        content = await finder.read_artifact(artifact)
        if path not in workspace and artifact.name in pages and content.startswith(_PAGE_START):
            continue
        if len(content) != artifact.size or artifact.size > left:
            yield RunFile(path, None)
            continue
        left -= artifact.size
        yield RunFile(path, content)
    stored = {one.name for one in await store.artifacts.list_by_thread(run.thread_id)}
    for path in await asyncio.to_thread(_find_unstored, finder, workspace, stored):
        yield RunFile(path, None)


def _list_workspace(finder: FigureFinder) -> dict[str, tuple[int, float]]:
    """Return the size and the time of the last change (Unix seconds) of each file of a thread, by path."""
    try:
        newest = finder.workspaces.locate(finder.run.thread_id).list_newest(MAX_SCANNED_FILES)
    except FileError:
        return {}
    return {
        path: (size, changed / 1e9)
        for path, size, changed in newest
        if not (is_cache(path) or is_team_record(path))
    }


def _place(
    finder: FigureFinder, artifacts: Sequence[Artifact], workspace: Collection[str]
) -> list[tuple[str, Artifact]]:
    """Return the newest artifacts with their paths: artifacts themselves have only a name."""
    given = _list_uploads(finder)
    by_name: dict[str, list[Artifact]] = {}
    for one in artifacts:
        by_name.setdefault(one.name, []).append(one)
    placed: list[tuple[str, Artifact]] = []
    for name, versions in by_name.items():
        paths = [path for path in workspace if path.rpartition("/")[2] == name]
        is_clear = len(versions) == len(paths) == 1
        same = {} if is_clear else {path: _find_version(finder, path, versions) for path in paths}
        # Files of the same name and content have one artifact.
        found = [
            (path, version)
            for path, version in same.items()
            if version is not None and (path, version.sha256) not in given
        ]
        # A file that later runs changed, that has secrets, or that is gone.
        alone = paths[0] if len(paths) == 1 else name
        placed += found or [(alone, versions[-1])]
    return placed


def _find_version(finder: FigureFinder, path: str, versions: Sequence[Artifact]) -> Artifact | None:
    """Return the version of a file that is in the workspace. Blocks."""
    digest = _digest(finder, path, max(one.size for one in versions))
    return next((one for one in reversed(versions) if one.sha256 == digest), None)


def _list_uploads(finder: FigureFinder) -> set[tuple[str, str]]:
    """Return path and SHA-256 of each file that the user gave to the thread. Blocks."""
    uploads = finder.workspaces.uploads(finder.run.thread_id).list_uploads()
    return {(one.path, one.sha256) for one in uploads}


def _find_unstored(
    finder: FigureFinder, workspace: Mapping[str, tuple[int, float]], stored: Collection[str]
) -> list[str]:
    """Return the paths of files that the run wrote and that are no artifacts. Blocks."""
    run = finder.run
    given = _list_uploads(finder)
    until = run.ended_at or float("inf")
    return [
        path
        for path, (size, changed) in workspace.items()
        if run.created_at <= changed <= until + 1
        and path.rpartition("/")[2] not in stored
        and not is_drawn_figure(path)
        and (size > MAX_WORKSPACE_BYTES or (path, _digest(finder, path, size)) not in given)
    ][:MAX_WORKSPACE_FILES]


def _digest(finder: FigureFinder, path: str, size: int) -> str:
    try:
        head = finder.workspaces.locate(finder.run.thread_id).read(path, size)
    except FileError:
        return ""
    return hashlib.sha256(head.content).hexdigest() if head.size == len(head.content) else ""

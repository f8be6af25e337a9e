"""The browser as agents use it: the tabs of the current thread, and the services that its pages need."""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from maniple.browser import (
    ACTIONS,
    Action,
    ActionName,
    ActionResult,
    Browser,
    BrowserState,
    FoundPage,
    Page,
    PageServices,
)
from maniple.errors import BrowserError, FileError
from maniple.outgoing import OutgoingGuard
from maniple.scope.run_scope import thread_key
from maniple.search import SearchProvider
from maniple.tools.evidence import ReadPage, read_line
from maniple.workspace import Workspace, Workspaces
from maniple.workspace.file_names import clean_file_name

MAX_THREADS = 256
"""The number of threads whose last state is stored."""
DOWNLOADS = "downloads"
_MAX_RESULTS = 10
_NOT_SENT = frozenset({"action", "goal", "index"})
"""The arguments of actions that no page gets."""
_CHUNK_BYTES = 1024 * 1024
_CHECKED_BYTES = 1_000_000
"""So much of an upload is looked through for secrets."""
_MAX_SAME_NAME = 1_000


class PageModel(Protocol):
    """A model that helps with the content of pages."""

    async def extract(self, goal: str, markdown: str) -> str:
        """Return the content of a page that answers the goal; "" if there is none."""
        ...

    async def choose(self, text: str, ways: tuple[str, ...], picture: bytes | None) -> int | None:
        """Return the index of the way to dismiss an overlay with this text, or None."""
        ...


PAGE_MODEL: ContextVar[PageModel | None] = ContextVar("maniple_reader", default=None)
"""The model of the acting agent; agents of a thread share its tabs but not their models."""


class ThreadBrowser:
    """Gives each call the page of its own thread."""

    def __init__(
        self, browser: Browser, services: PageServices | None = None, guard: OutgoingGuard | None = None
    ) -> None:
        self._browser = browser
        self._guard = guard or OutgoingGuard()
        self._services = replace(services or PageServices(), extract=self._extract, choose=self._choose)
        self._states: OrderedDict[str, BrowserState] = OrderedDict()

    @property
    def actions(self) -> tuple[ActionName, ...]:
        """The actions that the browser performs: without a web search none that searches, without a
        workspace none that stores a picture.
        """
        missing = () if self._services.search is not None else ACTIONS.of_kinds("search")
        if self._services.save_picture is None:
            missing = (*missing, *ACTIONS.of_kinds("picture"))
        return tuple(name for name in self._browser.actions if name not in missing)

    async def observe(self, *, screenshot: bool) -> BrowserState:
        """Observe the current tab; raises `BrowserError`."""
        self._states.pop(thread_key(), None)
        state = await (await self._page()).observe(screenshot=screenshot)
        self._states[thread_key()] = state
        if len(self._states) > MAX_THREADS:
            self._states.popitem(last=False)
        return state

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """Perform an action; raises `BrowserError`, or `SecretRefused`, with a text for the model."""
        given = action.model_dump() if isinstance(action, Action) else dict(action)
        shown = {key: one for key, one in given.items() if key not in _NOT_SENT}
        await asyncio.to_thread(self._guard.check, shown, by="the browser", thread=thread_key(), to="browser")
        return await (await self._page()).act(action)

    async def has_changed(self) -> bool:
        """Return whether another page or other controls are shown than in the last state."""
        try:
            return await (await self._page()).has_changed()
        except BrowserError:
            return True

    def last_state(self) -> BrowserState | None:
        """Return the last state of this thread, which may have changed since."""
        return self._states.get(thread_key())

    async def _page(self) -> Page:
        return await self._browser.page(thread_key(), self._services)

    async def _extract(self, goal: str, markdown: str) -> str:
        """Record the page as a source of the run, and return the content that answers the goal."""
        model, state = PAGE_MODEL.get(), self.last_state()
        found = await model.extract(goal, markdown) if model is not None else markdown
        if not found or state is None:
            return found
        line, obstacle = await read_line(ReadPage(state.url, state.title, markdown))
        return "\n\n".join(filter(None, (line, obstacle, found)))

    async def _choose(self, text: str, ways: Sequence[str], picture: bytes | None) -> int | None:
        model = PAGE_MODEL.get()
        return await model.choose(text, tuple(ways), picture) if model is not None else None


def page_fingerprint(state: BrowserState) -> str:
    """Return a hash of address, scroll position and content, ignoring the marks of new elements."""
    seen = (state.url, state.scroll_info.pixels_above, state.interactive_elements.replace("*[", "["))
    return hashlib.blake2s(repr(seen).encode(errors="replace"), digest_size=8).hexdigest()


def browser_services(
    search: SearchProvider | None,
    workspaces: Workspaces | None,
    upload_folder: Path,
    *,
    max_bytes: int,
    guard: OutgoingGuard | None = None,
) -> PageServices:
    """Return the services for search, downloads and uploads, as far as search and workspaces are available.

    A file of at most `max_bytes` is copied to `upload_folder` before its upload: code of the thread may
    replace its own file at any time, even by a link. `guard` checks what is in it.
    """
    copier = None
    if workspaces is not None:
        copier = _UploadCopier(workspaces, upload_folder, max_bytes, guard or OutgoingGuard())
    return PageServices(
        search=None if search is None else _Search(search),
        save_file=None if workspaces is None else _DownloadSaver(workspaces),
        open_file=copier,
    )


class _Search:
    def __init__(self, provider: SearchProvider) -> None:
        self._provider = provider

    async def __call__(self, query: str) -> Sequence[FoundPage]:
        hits = await self._provider.search(query, limit=_MAX_RESULTS)
        return [FoundPage(hit.title, hit.url, hit.content) for hit in hits if hit.url.startswith("http")]


class _DownloadSaver:
    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces

    async def __call__(self, name: str, temporary: Path) -> str:
        """Copy a download to an unused name in `downloads/`; return its path."""
        workspace = await asyncio.to_thread(self._workspaces.open, thread_key())
        return await asyncio.to_thread(_save, workspace, clean_file_name(name), temporary)


class _UploadCopier:
    def __init__(self, workspaces: Workspaces, folder: Path, max_bytes: int, guard: OutgoingGuard) -> None:
        self._workspaces = workspaces
        self._folder = folder
        self._max_bytes = max_bytes
        self._guard = guard

    async def __call__(self, path: str) -> Path:
        """Return a copy of a file of the workspace; raises `FileError`, or `SecretRefused`."""
        workspace = await asyncio.to_thread(self._workspaces.open, thread_key())
        return await asyncio.to_thread(self._copy, workspace, path)

    def _copy(self, workspace: Workspace, path: str) -> Path:
        with workspace.open(path) as source:
            size = os.fstat(source.fileno()).st_size
            if size > self._max_bytes:
                raise FileError(f"{path!r} has {size} bytes; at most {self._max_bytes} can be uploaded.")
            copy = Path(tempfile.mkdtemp(dir=self._folder)) / Path(path).name
            with copy.open("wb") as target:
                shutil.copyfileobj(source, target, _CHUNK_BYTES)
        with copy.open("rb") as file:
            text = file.read(_CHECKED_BYTES).decode(errors="replace")
        self._guard.check(f"{path}\n{text}", by="an upload", thread=thread_key(), to="browser")
        return copy


def _save(workspace: Workspace, name: str, temporary: Path) -> str:
    path = next((one for one in _candidate_paths(name) if workspace.is_missing(one)), None)
    if path is None:
        raise FileError(f"There are {_MAX_SAME_NAME} downloads called {name!r}; delete some of them.")
    with temporary.open("rb") as file:
        chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
        workspace.write_pieces(path, chunks, temporary.stat().st_size)
    return path


def _candidate_paths(name: str) -> Iterator[str]:
    stem, dot, suffix = name.rpartition(".")
    yield f"{DOWNLOADS}/{name}"
    for number in count(2):
        if number > _MAX_SAME_NAME:
            return
        yield f"{DOWNLOADS}/{stem or name}-{number}{dot if stem else ''}{suffix if stem else ''}"

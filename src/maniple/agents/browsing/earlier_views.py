"""What the browser showed before, stored as files: a view is gone from the conversation with the next one."""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field

from maniple.browser import BrowserState
from maniple.errors import FileError
from maniple.scope.run_scope import thread_key
from maniple.tools.items import READ_ITEM, StoredResults
from maniple.tools.thread_browser import MAX_THREADS

_SHOWN = 8
"""The number of earlier views that a model is told of."""
_MIN_LINES = 3
"""A view with fewer lines, such as that of an empty tab, is not worth reading again."""
_STILL_SHOWN = 0.7
"""A view is not gone while so much of it is in the next one."""
_TITLE_CHARACTERS = 60


@dataclass(slots=True)
class _ThreadViews:
    newest: BrowserState | None = None
    stored: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])
    """The names of those that are gone, by their paths, newest last."""


class EarlierViews:
    """Stores the views of threads that are gone, where `read_item` reads them."""

    def __init__(self, results: StoredResults) -> None:
        self._results = results
        self._threads: OrderedDict[str, _ThreadViews] = OrderedDict()

    async def follow(self, state: BrowserState) -> str:
        """Note what is shown now; return a line that names the views before it, "" for none."""
        views = self._threads.setdefault(thread_key(), _ThreadViews())
        self._threads.move_to_end(thread_key())
        if len(self._threads) > MAX_THREADS:
            self._threads.popitem(last=False)
        before, views.newest = views.newest, state
        if before is not None and _is_gone(before, state):
            text = f"{before.title}\n{before.url}\n\n{before.interactive_elements}"
            with suppress(FileError):  # no room: the view is gone
                path = await self._results.save("browser view", text)
                views.stored[path] = f"{path} ({before.title[:_TITLE_CHARACTERS]} {before.url})"
                while len(views.stored) > _SHOWN:
                    views.stored.popitem(last=False)
        return f"Earlier views, for {READ_ITEM}: {'; '.join(views.stored.values())}" if views.stored else ""


def _is_gone(before: BrowserState, now: BrowserState) -> bool:
    lines = _lines(before)
    if len(lines) < _MIN_LINES:
        return False
    return before.url != now.url or len(lines & _lines(now)) < _STILL_SHOWN * len(lines)


def _lines(state: BrowserState) -> set[str]:
    """Return the lines of a view without the indexes of its elements."""
    lines = (line.strip() for line in state.interactive_elements.splitlines())
    return {line.partition("]")[2] or line for line in lines if line}

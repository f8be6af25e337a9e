"""What an agent is shown of a sandbox's browser, and whether it is still so."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from maniple.browser.drivers.sandbox.answer import Answer, Control
from maniple.browser.listing import Row, chosen, text_of
from maniple.browser.state import BrowserState, Element, ScrollInfo, Tab
from maniple.errors import BrowserError


class FinalWordsError(BrowserError):
    """A failure in the contract's words, to which nothing is added."""


@dataclass(slots=True)
class TabNote:
    """A tab as it was last seen; the API tells of the current one only."""

    tab_id: int
    url: str = ""
    title: str = ""


@dataclass(slots=True)
class View:
    """The tabs, in the API's order, the last look and what was told last."""

    tabs: list[TabNote] = field(default_factory=lambda: [TabNote(1)])
    current: int = 0
    latest: Answer | None = None
    shown: dict[int, Control] = field(default_factory=dict)
    shown_url: str = ""
    listed: tuple[Control, ...] = ()
    """All the controls at the last look, also those that were not shown."""
    next_tab_id: int = 2

    def hear(self, answer: Answer) -> None:
        """Remember the state that an answer tells; failures often tell none."""
        if not answer.url:
            return
        self.latest = answer
        if self.tabs:
            self.tabs[self.current].url, self.tabs[self.current].title = answer.url, answer.title

    def open(self) -> int:
        """Note a new tab, which is the current one; returns its id."""
        self.tabs.append(TabNote(self.next_tab_id))
        self.next_tab_id += 1
        self.current = len(self.tabs) - 1
        return self.tabs[-1].tab_id

    def close(self) -> None:
        """Forget the current tab; the API goes on with the one before it."""
        del self.tabs[self.current]
        self.current = max(0, self.current - 1)

    def place(self, tab_id: int | None) -> int:
        """Return where in the API's order a tab stands; raises `BrowserError`."""
        for place, tab in enumerate(self.tabs):
            if tab.tab_id == tab_id:
                return place
        known = ", ".join(str(tab.tab_id) for tab in self.tabs)
        raise BrowserError(f"There is no tab {tab_id}; there are: {known or 'none'}.")

    def require_unchanged(self, index: int | None) -> Control:
        """Return the control that was shown at `index`, if it still stands there.

        The API takes an index for the place among the controls of that moment, whatever was shown before. Of
        several that are alike none can be told from the others: there no control may have come or gone.

        Raises:
            BrowserError: it was not shown, or another one stands there now.
        """
        control = self.shown.get(-1 if index is None else index)
        if control is None:
            raise FinalWordsError(f"Element with index {index} not found")
        answer = self.latest
        now = next((one for one in answer.controls if one.index == index), None) if answer else None
        if answer is None or answer.url != self.shown_url or not self._stands(now, control, answer.controls):
            raise FinalWordsError(
                f"Element with index {index} not found: the page has changed since it was shown; look again."
            )
        return control

    def _stands(self, now: Control | None, shown: Control, controls: Sequence[Control]) -> bool:
        if now is None or not _is_same(now, shown):
            return False
        alike = max(sum(_is_same(one, shown) for one in listed) for listed in (self.listed, controls))
        return alike == 1 or (len(controls) == len(self.listed) and all(map(_is_same, controls, self.listed)))

    def look(self, *, tokens: int, screenshot: bool) -> BrowserState:
        """Return the state as an agent is shown it; from here on its indexes are the valid ones."""
        answer = self.latest
        controls = answer.controls if answer else ()
        url = answer.url if answer else ""
        known = {_identity(one) for one in self.shown.values()} if self.shown_url == url else None
        rows = chosen([_row(line, one, known) for line, one in enumerate(controls)], tokens)
        by_index = {one.index: one for one in controls}
        told = [row for row in rows if row.role]
        self.shown, self.shown_url = {row.index: by_index[row.index] for row in told}, url
        self.listed = controls
        return BrowserState(
            snapshot_id=secrets.token_hex(4),
            url=url,
            title=answer.title if answer else "",
            tabs=tuple(
                Tab(tab.tab_id, tab.title, tab.url, place == self.current)
                for place, tab in enumerate(self.tabs)
            ),
            interactive_elements=text_of(rows),
            elements=tuple(Element(row.index, row.role, row.text, row.is_new) for row in told),
            scroll_info=ScrollInfo(answer.pixels_above, answer.pixels_below) if answer else ScrollInfo(0, 0),
            viewport_height=answer.viewport_height if answer else 0,
            screenshot=answer.screenshot if answer and screenshot else None,
        )


def _identity(control: Control) -> tuple[object, ...]:
    return control.tag, control.name, control.attributes


def _row(line: int, control: Control, known: set[tuple[object, ...]] | None) -> Row:
    return Row(
        line,
        control.name,
        seen=control.in_view,
        role=control.role,
        index=control.index,
        is_new=known is not None and _identity(control) not in known,
    )


def _is_same(now: Control, shown: Control) -> bool:
    # What is typed into a field is its text: it may change.
    if (now.tag, now.attributes) != (shown.tag, shown.attributes):
        return False
    return now.tag in ("input", "textarea", "select") or now.text == shown.text

"""What clearing needs of a tab; the drivers give it."""

from typing import Any, Protocol


class Document(Protocol):
    """A page, or the page in one of its frames. Every call raises `BrowserError` when it has gone."""

    async def evaluate(self, script: str, argument: Any) -> Any:
        """What the JavaScript function `script` returns for `argument`, as JSON has it: the page's word."""
        ...

    async def click(self, script: str, argument: Any) -> None:
        """Click, as a person would, the element that `script` returns for `argument`; none: nothing."""
        ...

    async def frame(self, script: str, argument: Any) -> "Document | None":
        """The document in the frame element that `script` returns for `argument`; None when there is none."""
        ...


class Surface(Protocol):
    """A tab as a person has it before them."""

    @property
    def document(self) -> Document:
        """The page itself."""
        ...

    async def press(self, key: str) -> None:
        """Press the key, such as `Escape`."""
        ...

    async def click_at(self, x: float, y: float) -> None:
        """Click at a point of the window, in CSS pixels."""
        ...

    async def screenshot(self) -> bytes | None:
        """The window as JPEG, or None when there is no picture to be had."""
        ...

"""Addresses that a click opens (OSC 8), on terminals that are known to show them."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

_ADDRESS = re.compile(r"https?://[^\s<>\"`|]+")
_NOT_AT_THE_END = ".,;:!?)]}'*_"
_SCHEMES = ("http", "https")
_VARIABLES = ("WT_SESSION", "KONSOLE_VERSION", "DOMTERM", "KITTY_WINDOW_ID", "WEZTERM_PANE")
"""Each is set only by a terminal that shows links."""
_PROGRAMS = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio", "zed", "WarpTerminal")
_TERMS = ("xterm-kitty", "alacritty", "foot", "xterm-ghostty", "wezterm", "contour")
_OLDEST_VTE = 5_000
"""The version 0.50 of the library behind GNOME's and other terminals."""
_OLDEST_TMUX = (3, 4)


def can_show_links(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal of these environment variables shows links.

    FORCE_HYPERLINK decides if it is set: 0 for no, anything else for yes. An unknown terminal might print the
    sequences as text, so it gets none.
    """
    forced = environ.get("FORCE_HYPERLINK", "")
    if forced:
        return forced != "0"
    program = environ.get("TERM_PROGRAM", "")
    if program == "tmux" or "TMUX" in environ:
        return program == "tmux" and _version(environ.get("TERM_PROGRAM_VERSION", "")) >= _OLDEST_TMUX
    if environ.get("TERM", "").startswith(_TERMS) or program in _PROGRAMS:
        return True
    vte = environ.get("VTE_VERSION", "")
    return any(environ.get(name) for name in _VARIABLES) or (vte.isdecimal() and int(vte) >= _OLDEST_VTE)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def link_style(address: str) -> Style | None:
    """Return the style that makes a text open `address`; None for an address that is not of the web."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme not in _SCHEMES or not parts.netloc:
        return None
    # In the sequence only printable ASCII is defined.
    return Style(link=quote(address, safe="!#$%&'()*+,/:;=?@[]~"))


def link_addresses(text: Text) -> Text:
    """Return `text` with each web address in it as a link to itself."""
    for found in _ADDRESS.finditer(text.plain):
        address = found[0].rstrip(_NOT_AT_THE_END)
        if (style := link_style(address)) is not None:
            text.stylize(style, found.start(), found.start() + len(address))
    return text


class WithoutLinks:
    """A renderable whose links are only text."""

    def __init__(self, body: RenderableType) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._body, options):
            style = segment.style
            if style is not None and style.link:
                segment = Segment(segment.text, style.update_link(None), segment.control)
            yield segment

"""The generated pages of the manual: settings, events, HTTP, Python. They are part of the repository."""

from manual.events_page import events_page
from manual.http_page import http_page
from manual.python_page import python_page
from manual.settings_page import settings_page
from manual.site import ROOT

FOLDER = ROOT / "docs/reference"


def reference_pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {
        "settings.md": settings_page((ROOT / "conf.yaml").read_text(encoding="utf-8")),
        "events.md": events_page(),
        "http.md": http_page(),
        "python.md": python_page(),
    }


def write_reference() -> None:
    """Write the pages that differ."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in reference_pages().items():
        path = FOLDER / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

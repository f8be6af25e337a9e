"""The pages in `pages/`.

`covered` ones by real packages of the npm registry, `handmade` ones by what no package makes, and `clean`
ones that only look so.
"""

import re
import sys
from pathlib import Path

from tests.crawler.web import Reply

# Put there by `setup.sh dev`.
PACKAGES = Path(sys.prefix, "obstacles/node_modules")

_PAGES = Path(__file__).parent / "pages"
CLEAN = sorted(path.stem for path in _PAGES.glob("clean/*.html"))
HANDMADE = sorted(path.stem for path in _PAGES.glob("handmade/*.html"))
COVERED = sorted(path.stem for path in _PAGES.glob("covered/*.html"))

_TARTEAUCITRON = (
    "css/tarteaucitron.css",
    "lang/tarteaucitron.en.js",
    "tarteaucitron.services.js",
)
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Paper</title>
<script>clicks = 0;
for (const kind of ["click", "keydown"]) addEventListener(kind, () => clicks++, true);</script>
</head><body>{}<p>News of the day.</p><button id="work">Read on</button><div style="height: 1500px"></div>
</body></html>"""


def page(body: str) -> Reply:
    """A page around `body`, which counts in `clicks` what is done to it."""
    return Reply(_PAGE.format(body))


def written_pages() -> dict[str, Reply]:
    """Each of `CLEAN` at `/clean/NAME`, each of `HANDMADE` at `/handmade/NAME`, its overlay marked `.o`."""
    named = {"clean": CLEAN, "handmade": HANDMADE}
    return {
        f"/{folder}/{name}": page(_body(folder, name)) for folder, names in named.items() for name in names
    }


def covered_pages() -> dict[str, Reply]:
    """Each of `COVERED` at `/covered/NAME`, with what it loads from the packages at `/npm/…`."""
    bodies = {name: _body("covered", name) for name in COVERED}
    files = {file for body in bodies.values() for file in re.findall(r'"/npm/([^"]+)"', body)}
    files |= {f"tarteaucitronjs/{file}" for file in _TARTEAUCITRON}
    return {
        **{f"/covered/{name}": page(body) for name, body in bodies.items()},
        **{f"/npm/{file}": Reply((PACKAGES / file).read_bytes(), _type_of(file)) for file in files},
    }


def overlay_selector(name: str) -> str:
    """Selects what must no longer be in sight on the covered page."""
    return re.findall("<!-- obstacle: (.+) -->", _body("covered", name))[0]


def _body(folder: str, name: str) -> str:
    return (_PAGES / folder / f"{name}.html").read_text("utf-8")


def _type_of(file: str) -> str:
    return "text/css" if file.endswith(".css") else "text/javascript"

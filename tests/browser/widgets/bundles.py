"""Pages with components and editors of the npm registry, bundled by esbuild's own program."""

import asyncio
import sys
from pathlib import Path

from tests.crawler.web import Reply

# Put there by `setup.sh dev`.
PACKAGES = Path(sys.prefix, "widgets/node_modules")

_FLAGS = ("--bundle", "--format=esm", "--minify", "--log-level=error")
_PAGE = """<!doctype html><meta charset="utf-8"><title>Widgets</title>{}<p id="ready" hidden>loading</p>
<script type="module" src="/bundle.js"></script>"""


async def bundle(script: str) -> bytes:
    """Return a module with all that it imports from the packages."""
    esbuild = await asyncio.to_thread(lambda: next(PACKAGES.glob("@esbuild/*/bin/esbuild")))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        esbuild, *_FLAGS, cwd=PACKAGES, stdin=pipe, stdout=pipe, stderr=pipe
    )
    output, errors = await process.communicate(script.encode())
    assert process.returncode == 0, errors.decode()
    return output


async def widget_pages(script: str, html: str) -> dict[str, Reply]:
    """Return a page with `html` whose title is "Ready" when the script has run."""
    module = await bundle(f"{script}\ndocument.title = 'Ready';")
    return {"/": Reply(_PAGE.format(html)), "/bundle.js": Reply(module, "text/javascript")}

"""Draws diagrams as pictures."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from maniple.browser.drivers.page_visits import PageVisits
from maniple.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Page, Route

    from maniple.browser.drivers.chromium import ContextSource

_MAX_PARALLEL = 1
_SITE = "http://diagrams.invalid"
_PICTURE = "#picture"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_DRAW = """
async (code) => {
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  postMessage({ code, isDark: false }, "*", [port2]);
  const { svg } = await answer;
  if (typeof svg !== "string") return false;
  const picture = Object.assign(new Image(), { id: "picture" });
  picture.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  document.body.replaceChildren(picture);
  await picture.decode();
  return true;
}
"""
"""Asks `web/public/diagram.js`, as the page does, and shows the result as a picture, which runs nothing."""


class DiagramPainter:
    """Draws diagrams in contexts without network, one report at a time."""

    def __init__(self, contexts: "ContextSource", timeout_seconds: float) -> None:
        self._visits = PageVisits(contexts)
        self._timeout_seconds = timeout_seconds
        self._slots = asyncio.Semaphore(_MAX_PARALLEL)

    async def draw(self, folder: Path, sources: Sequence[str], scale: int) -> list[bytes]:
        """See `Browser.draw`. After a diagram that takes too long, no further one is drawn."""
        from playwright.async_api import Error

        drawn: list[bytes] = []
        try:
            async with self._slots, asyncio.timeout(self._timeout_seconds):
                site = await asyncio.to_thread(_read_site, folder)
                async with self._visits.page(device_scale_factor=scale) as page:
                    await self._open(page, site)
                    for source in sources:
                        drawn.append(await _draw(page, source))
        except TimeoutError:
            pass
        except (Error, OSError) as failure:
            raise BrowserError(f"The browser could not draw diagrams: {failure}") from failure
        return [*drawn, *[b""] * (len(sources) - len(drawn))]

    async def aclose(self) -> None:
        """Wait until all pages are closed."""
        await self._visits.aclose()

    async def _open(self, page: "Page", site: dict[str, bytes]) -> None:
        async def answer(route: "Route") -> None:
            path = urlsplit(route.request.url).path
            content = site.get(path) if route.request.url.startswith(f"{_SITE}/") else None
            if content is None:
                await route.abort()
                return
            kind = "text/html" if path.endswith(".html") else "text/javascript"
            headers = {"content-security-policy": _POLICY}
            await route.fulfill(body=content, content_type=f"{kind}; charset=utf-8", headers=headers)

        await page.route("**/*", answer)
        library = next(path for path in site if path.startswith("/assets/"))
        await page.goto(f"{_SITE}/diagram.html#{library}", timeout=self._timeout_seconds * 1000)


async def _draw(page: "Page", source: str) -> bytes:
    is_drawn: Any = await page.evaluate(_DRAW, source)
    return await page.locator(_PICTURE).screenshot(type="png") if is_drawn else b""


def _read_site(folder: Path) -> dict[str, bytes]:
    """Return the files that draw, by path. Raises `OSError` if they are not there. Blocks."""
    library = sorted(folder.glob("assets/mermaid*.js"))
    if not library:
        raise FileNotFoundError("the page is not built (make page).")
    files = [folder / "diagram.html", folder / "diagram.js", library[0]]
    return {f"/{one.relative_to(folder).as_posix()}": one.read_bytes() for one in files}

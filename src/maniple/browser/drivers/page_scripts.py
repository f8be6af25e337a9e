"""JavaScript that is evaluated in pages, one function a file."""

import asyncio
from functools import cache
from importlib.resources import files


async def script(name: str) -> str:
    """Return the function in `scripts/{name}.js`."""
    return await asyncio.to_thread(_read, name)


@cache
def _read(name: str) -> str:
    return (files("maniple.browser.drivers") / "scripts" / f"{name}.js").read_text(encoding="utf-8")

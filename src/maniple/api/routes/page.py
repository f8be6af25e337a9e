"""The web page of the service. Its source is in `web/`, its build beside this package."""

import asyncio
import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response

from maniple.replay.player import NOT_BUILT, load_player
from maniple.replay.sample import load_sample
from maniple.runs import NotFound

router = APIRouter(include_in_schema=False)
BUILD = Path(__file__).parents[1] / "page"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_GUARD = {
    # Nothing from other origins, and nothing inline; pictures of runs need the key, so they are blobs.
    "content-security-policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "vary": "accept-encoding",
}
_DRAWING_GUARD = {
    # Mermaid writes inline styles and draws untrusted text: it runs in a frame without origin or network;
    # its result is shown as a picture.
    **_GUARD,
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts",
}
_DOCUMENTATION_GUARD = {
    # The style sheet of Swagger UI holds its icons as data.
    **_GUARD,
    "content-security-policy": _GUARD["content-security-policy"].replace("blob:", "data:"),
}
_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    packed: bytes
    media_type: str
    etag: str


@cache
def _paths() -> dict[str, Path]:
    """Return the paths of the files of the build by name; they are part of the package and never change."""
    found = (path for path in BUILD.rglob("*") if path.suffix in _MEDIA_TYPES)
    return {path.relative_to(BUILD).as_posix(): path for path in found}


@cache
def _read(path: Path) -> _File:
    return _pack(path.read_bytes(), _MEDIA_TYPES[path.suffix])


def _pack(content: bytes, media_type: str) -> _File:
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _File(content, gzip.compress(content, mtime=0), media_type, etag)


@cache
def _read_sample() -> tuple[_File, str]:
    """Return the recorded run as a file, and its content security policy."""
    return _pack(load_sample().file(), _MEDIA_TYPES[".html"]), load_player().policy


def _file(name: str) -> _File | None:
    # Each file is compressed at its first request: the code that draws diagrams is large and rarely used.
    path = _paths().get(name)
    return _read(path) if path else None


@router.get("/")
async def page(request: Request) -> Response:
    """The page itself; which files it loads changes with each version."""
    # A person will ask soon. The first run loads the models' clients otherwise.
    request.app.state.service.runtime.models.start_loading()
    return await _answer("index.html", request, _ASK_AGAIN)


@router.get("/docs")
async def documentation(request: Request) -> Response:
    """The documentation of the HTTP API, which reads `/openapi.json`."""
    return await _answer("docs.html", request, _ASK_AGAIN, _DOCUMENTATION_GUARD)


@router.get("/icon.svg")
async def icon(request: Request) -> Response:
    """The icon in the browser's tab."""
    return await _answer("icon.svg", request, _ASK_AGAIN)


@router.get("/sample")
async def sample(request: Request) -> Response:
    """A recorded run, played as any other run is (`GET /api/runs/{run_id}/page`)."""
    file, policy = await asyncio.to_thread(_read_sample)
    guard = {**_GUARD, "content-security-policy": f"{policy}; frame-ancestors 'none'"}
    return _send(file, request, _ASK_AGAIN, guard)


@router.get("/diagram.html")
async def drawing(request: Request) -> Response:
    """The frame in which the page lets diagrams be drawn."""
    return await _answer("diagram.html", request, _ASK_AGAIN, _DRAWING_GUARD)


@router.get("/diagram.js")
async def drawing_script(request: Request) -> Response:
    """The script that draws in that frame."""
    return await _answer("diagram.js", request, _ASK_AGAIN)


@router.get("/assets/{name}")
async def asset(name: str, request: Request) -> Response:
    """A file that the page loads; its name contains a digest of its content."""
    return await _answer(f"assets/{name}", request, _FOR_EVER)


async def _answer(name: str, request: Request, cached: str, guard: dict[str, str] = _GUARD) -> Response:
    file = await asyncio.to_thread(_file, name)
    if file is None:
        raise NotFound("The page has no such file." if _paths() else NOT_BUILT)
    return _send(file, request, cached, guard)


def _send(file: _File, request: Request, cached: str, guard: dict[str, str]) -> Response:
    headers = {**guard, "etag": file.etag, "cache-control": cached}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["content-encoding"] = "gzip"
        return Response(file.packed, media_type=file.media_type, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)

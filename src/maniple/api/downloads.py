"""Files as attachments: a browser saves them and never shows or runs them in the origin of this service."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from maniple.errors import ManipleError
from maniple.media_types import media_type_of
from maniple.reading.pictures import figure_path
from maniple.report_files import MEDIA_TYPES as FILE_TYPES
from maniple.report_files import ReportRenderer, load_report, policy
from maniple.run_files.pictures import FigureFinder
from maniple.runs import NotFound
from maniple.service.views import ErrorResponse, ReportView
from maniple.store import Artifact, Store

FILE_HEADERS = {
    "content-security-policy": "sandbox",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "private, no-store",
}
ATTACHMENT: dict[str, Any] = {"description": "The file, as an attachment", "content": {"*/*": {}}}
ARCHIVE: dict[str, Any] = {
    "description": "The files, as an attachment",
    "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
}
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}", re.I)
_RANGE = re.compile(r"bytes=(?P<start>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.ASCII)
_PIECE_BYTES = 256 * 1024


class OpenFileResponse(StreamingResponse):
    """The content of an open file, which is closed afterwards. Its path is not resolved again."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        size = os.fstat(file.fileno()).st_size
        headers = {
            **FILE_HEADERS,
            "content-length": str(size),
            "content-disposition": content_disposition(name),
        }
        media_type = media_type_of(name)
        super().__init__(_pieces(file, size), headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


async def respond_with_artifact(
    store: Store, artifact: Artifact, request: Request, headers: Mapping[str, str]
) -> Response:
    """Return the content of an artifact, or the one part of it that a `Range` header asks for.

    Several ranges in one header are answered with the whole content (RFC 9110, 14.2). Raises `FileError` for
    a content that is gone.
    """
    content = await store.artifacts.open(artifact)
    known = _MEDIA_TYPE.fullmatch(artifact.media_type)
    media_type = artifact.media_type if known else "application/octet-stream"
    headers = {**headers, "accept-ranges": "bytes", "etag": f'"{artifact.sha256}"'}
    wanted = request.headers.get("range", "")
    if request.headers.get("if-range", headers["etag"]) != headers["etag"]:
        wanted = ""  # the client has a part of another content
    status, start, stop = _find_range(wanted, content.size)
    headers["content-length"] = str(stop - start)
    if status != 200:
        covered = f"{start}-{stop - 1}" if status == 206 else "*"
        headers["content-range"] = f"bytes {covered}/{content.size}"
    pieces = content.stream(start, stop)
    return StreamingResponse(pieces, status_code=status, headers=headers, media_type=media_type)


def _find_range(wanted: str, size: int) -> tuple[Literal[200, 206, 416], int, int]:
    """Return the status of the answer to a `Range` header, and the part (start, stop) that it contains."""
    found = _RANGE.fullmatch(wanted.strip())
    if found is None or not (found["start"] or found["last"]):
        return 200, 0, size
    last = int(found["last"]) if found["last"] else size - 1
    start, stop = (int(found["start"]), last + 1) if found["start"] else (max(size - last, 0), size)
    if start >= size or (not found["start"] and last == 0):
        return 416, 0, 0
    if stop <= start:
        return 200, 0, size
    return 206, start, min(stop, size)


def content_disposition(name: str) -> str:
    """Return the `Content-Disposition` of a file that is to be saved under `name`."""
    return f"attachment; filename*=utf-8''{quote(name, safe='')}"


async def _pieces(file: BinaryIO, left: int) -> AsyncIterator[bytes]:
    """Yield what the file contained when it was opened; it may have grown since."""
    while left > 0 and (piece := await asyncio.to_thread(file.read, min(left, _PIECE_BYTES))):
        left -= len(piece)
        yield piece


ReportForm = Literal["markdown", "html", "json", "pdf", "docx", "pptx", "zip"]
MEDIA_TYPES: dict[ReportForm, str] = {
    **{form: FILE_TYPES[form] for form in ("markdown", "html")},
    "json": "application/json",
    **{form: FILE_TYPES[form] for form in ("pdf", "docx", "pptx", "zip")},
}
"""In the order of preference among formats to which a client gives the same weight."""
_SUFFIXES = {"markdown": "md"}
_MAX_NAME_LENGTH = 80
_NOT_IN_NAMES = re.compile(r"[^\w\s()&+,;=@#%~^!.-]")
_TEXT, _FILE = {"type": "string"}, {"type": "string", "format": "binary"}
REPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report: Markdown, unless `form` or `Accept` requests another format",
        "content": {
            **{MEDIA_TYPES[form]: {"schema": _TEXT} for form in ("markdown", "html")},
            MEDIA_TYPES["json"]: {"schema": {"$ref": f"#/components/schemas/{ReportView.__name__}"}},
            **{MEDIA_TYPES[form]: {"schema": _FILE} for form in ("pdf", "docx", "pptx", "zip")},
        },
    },
    503: {
        "model": ErrorResponse,
        "description": "Stopping, the store cannot be used, or no PDF can be printed",
    },
}


class FormNotAcceptable(ManipleError):
    """The client accepts none of the formats that the service has."""

    code = "not_acceptable"


class FilesMissing(ManipleError):
    """The runs of the conversation made no files."""

    code = "no_files"


async def stream_archive(pieces: AsyncGenerator[bytes], title: str) -> StreamingResponse:
    """Send a ZIP file while it is made, named after `title`; raises `FilesMissing` for an empty one."""
    # Before the status is sent, so that what fails at the beginning is an error and no broken file.
    first = await anext(pieces, None)
    if first is None:
        raise FilesMissing("The team has made no files in this conversation.")

    async def send() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    headers = {**FILE_HEADERS, "content-disposition": content_disposition(_file_name(title, "files", "zip"))}
    return StreamingResponse(send(), media_type="application/zip", headers=headers)


async def read_figure(finder: FigureFinder, path: str) -> Response:
    """Return a picture of the run's thread; raises `NotFound` if there is none at `path`."""
    figure = (await finder.find_all([quote(path)])).get(figure_path(quote(path)))
    if figure is None:
        raise NotFound("There is no such picture.")
    headers = {**FILE_HEADERS, "content-disposition": content_disposition(path.rpartition("/")[2])}
    return Response(figure.content, media_type=figure.info.media_type, headers=headers)


async def render_report(
    renderer: ReportRenderer,
    view: ReportView,
    form: ReportForm,
    finder: FigureFinder,
    *,
    as_file: bool,
) -> Response:
    """Return the report in a format, with the figures that `finder` finds; with `as_file` as an attachment.

    Raises:
        PrintBrowserMissing: the format is PDF, and there is no browser.
        PrintFailed: the browser did not print it.
        StoreError: the run cannot be read.
    """
    headers = {
        "content-security-policy": f"{policy()}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-store",
        "vary": "accept",
    }
    if as_file:
        headers["content-disposition"] = f"attachment; filename*=utf-8''{quote(_name(view, form), safe='')}"
    # As plain text it is the answer of the run; what is taken away ends with the claims without support.
    with_claims = as_file or form not in ("json", "markdown")
    report = await load_report(finder, view.markdown, with_files=form == "zip", with_claims=with_claims)
    if form == "json":
        markdown = (await renderer.render(report, "markdown")).decode()
        return JSONResponse(view.model_copy(update={"markdown": markdown}).model_dump(), headers=headers)
    return Response(await renderer.render(report, form), media_type=MEDIA_TYPES[form], headers=headers)


def negotiate_form(accept: str) -> ReportForm:
    """Return the format that an `Accept` header prefers; of equal ones, the first in `MEDIA_TYPES`."""
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]

    def quality(form: ReportForm) -> float:
        ours = MEDIA_TYPES[form]
        matching = [
            (wanted.count("*"), -q)
            for wanted, q in ranges
            if wanted in (ours, f"{ours.split('/')[0]}/*", "*/*")
        ]
        return -min(matching)[1] if matching else 0.0

    best = max(MEDIA_TYPES, key=quality)
    if quality(best) <= 0:
        raise FormNotAcceptable(f"A report can be had as {', '.join(MEDIA_TYPES.values())}.")
    return best


def _range(part: str) -> tuple[str, float]:
    media_type, *parameters = (piece.strip() for piece in part.casefold().split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            return media_type, _number(parameter[2:])
    return media_type, 1.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def _name(view: ReportView, form: ReportForm) -> str:
    return _file_name(view.title, "report", _SUFFIXES.get(form, form))


def _file_name(title: str, otherwise: str, suffix: str) -> str:
    """Return a file name that is valid on every system, made from a title."""
    words = _NOT_IN_NAMES.sub(" ", title)[:_MAX_NAME_LENGTH]
    return f"{' '.join(words.split()).strip('. ') or otherwise}.{suffix}"

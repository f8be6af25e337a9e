"""The files of a conversation: uploads of the user, and files that the team wrote."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any, BinaryIO

from fastapi import Path, Request, Response
from fastapi.responses import StreamingResponse
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.downloads import (
    ARCHIVE,
    ATTACHMENT,
    FILE_HEADERS,
    OpenFileResponse,
    content_disposition,
    respond_with_artifact,
    stream_archive,
)
from maniple.api.error_responses import error_responses
from maniple.api.state import ServiceOf
from maniple.errors import FileError
from maniple.report_files.thread_archive import write_thread_archive
from maniple.runs import NotFound
from maniple.service.thread_views import ThreadId, get_thread
from maniple.service.views import MAX_UPLOADED_FILES, StoredFile, StoredFiles, ThreadFile, ThreadFiles
from maniple.workspace import StoredUpload, Workspaces

router = keyed_router("files")
LISTED_FILES = 1_000
_ThreadPath = Annotated[ThreadId, Path(description="The conversation")]
_FilePath = Annotated[str, Path(max_length=4_096, description="The file's path in the workspace")]
_BINARY = {"type": "string", "format": "binary"}
_MULTIPART: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"files": {"type": "array", "items": _BINARY, "minItems": 1}},
                    "required": ["files"],
                }
            }
        },
    }
}


@router.post(
    "/api/threads/{thread_id}/files",
    status_code=201,
    summary="Put files into a conversation",
    openapi_extra=_MULTIPART,
    responses=error_responses(404),
)
async def upload_files(
    thread_id: _ThreadPath, request: Request, service: ServiceOf, caller: CallerOf
) -> StoredFiles:
    """Put files into the workspace of a thread; the prompts of the next run list them.

    Each is stored under the last part of its name, without control characters and leading dots; a file of the
    same name is replaced. If there is no room for all of them, none is stored.
    """
    # Before the body is read, so that uploads for unknown threads cannot fill the disk.
    key = (await get_thread(service.store, thread_id, caller.owner)).thread_id
    async with _files(request) as files:
        stored = await asyncio.to_thread(_store, service.workspaces, key, files)
    try:
        await get_thread(service.store, thread_id, caller.owner)
    except NotFound:
        await asyncio.to_thread(service.workspaces.remove, key)  # it was deleted meanwhile
        raise
    return StoredFiles(files=[StoredFile.of(thread_id, one) for one in stored])


@router.get(
    "/api/threads/{thread_id}/files", summary="List a conversation's files", responses=error_responses(404)
)
async def list_files(thread_id: _ThreadPath, service: ServiceOf, caller: CallerOf) -> ThreadFiles:
    """The files in the workspace now; those whose names are not valid Unicode are left out."""
    key = (await get_thread(service.store, thread_id, caller.owner)).thread_id

    def read() -> ThreadFiles:
        found = service.workspaces.files(key, LISTED_FILES + 1).found
        uploaded = {one.path: one.at for one in service.workspaces.uploads(key).list_uploads()}
        files = [
            ThreadFile.of(thread_id, path, size, uploaded.get(path))
            for path, size in found[:LISTED_FILES]
            if _is_text(path)
        ]
        return ThreadFiles(files=files, has_more=len(found) > LISTED_FILES)

    return await asyncio.to_thread(read)


@router.get(
    "/api/threads/{thread_id}/files.zip",
    summary="Download what the team made",
    response_class=Response,
    responses={200: ARCHIVE, **error_responses(404)},
)
async def read_archive(thread_id: _ThreadPath, service: ServiceOf, caller: CallerOf) -> StreamingResponse:
    """The files that the conversation's runs made or changed, and no unchanged upload, as a ZIP file.

    Of each file it has the newest version that a run stored, without secrets. What is too large or too many,
    or what a run at work has not stored yet, is named in `not-included.txt`. 404 (`no_files`) if there is
    nothing.
    """
    thread = await get_thread(service.store, thread_id, caller.owner)
    pieces = write_thread_archive(service.store, service.workspaces, thread.thread_id)
    return await stream_archive(pieces, thread.title)


@router.get(
    "/api/threads/{thread_id}/files/{path:path}",
    summary="Read a conversation's file",
    response_class=Response,
    responses={200: ATTACHMENT, **error_responses(404)},
)
async def read_file(
    thread_id: _ThreadPath, path: _FilePath, service: ServiceOf, caller: CallerOf
) -> OpenFileResponse:
    """The file as an attachment, as it is now; links are not followed."""
    key = (await get_thread(service.store, thread_id, caller.owner)).thread_id
    try:
        file = await asyncio.to_thread(service.workspaces.locate(key).open, path)
    except FileError as error:
        raise NotFound(str(error)) from error
    return OpenFileResponse(file, path.rpartition("/")[2])


@router.delete(
    "/api/threads/{thread_id}/files/{path:path}",
    status_code=204,
    summary="Delete a conversation's file",
    response_class=Response,
    responses=error_responses(404),
)
async def delete_file(thread_id: _ThreadPath, path: _FilePath, service: ServiceOf, caller: CallerOf) -> None:
    """Remove one file from the workspace; artifacts that were made from it stay."""
    key = (await get_thread(service.store, thread_id, caller.owner)).thread_id
    try:
        await asyncio.to_thread(service.workspaces.locate(key).delete, path)
    except FileError as error:
        raise NotFound(str(error)) from error
    await asyncio.to_thread(service.workspaces.uploads(key).forget, path)


@asynccontextmanager
async def _files(request: Request) -> AsyncGenerator[list[tuple[str, BinaryIO]]]:
    """Yield the names and the contents of the files in the body; large ones are buffered on disk."""
    try:
        async with request.form(max_files=MAX_UPLOADED_FILES, max_fields=MAX_UPLOADED_FILES) as form:
            sent = [one for _, one in form.multi_items() if isinstance(one, UploadFile)]
            files = [(one.filename or "", one.file) for one in sent if one.filename or one.size]
            if not files:
                raise FileError(
                    "There is no file in it: send multipart/form-data whose parts have a filename."
                )
            yield files
    except ClientDisconnect as error:
        raise FileError("The upload broke off; send it again.") from error


def _store(workspaces: Workspaces, key: str, files: list[tuple[str, BinaryIO]]) -> list[StoredUpload]:
    workspaces.open(key)
    return workspaces.uploads(key).add(files)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


artifact_router = keyed_router("artifacts")
_ArtifactPath = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9-]+$", description="The file")]
_ARTIFACT: dict[int | str, dict[str, Any]] = {
    200: ATTACHMENT,
    206: {"description": "The part of it that a Range header asks for"},
    416: {"description": "There is no such part"},
}


@artifact_router.get(
    "/api/artifacts/{artifact_id}",
    summary="Read a file that a run made",
    response_class=Response,
    responses={**_ARTIFACT, **error_responses(404)},
)
async def read_artifact(
    artifact_id: _ArtifactPath, request: Request, service: ServiceOf, caller: CallerOf
) -> Response:
    """The file as an attachment: a browser saves it and never shows or runs it here."""
    artifact = await service.store.artifacts.get(artifact_id, caller.owner)
    if artifact is None:
        raise NotFound("There is no such artifact.")
    headers = {**FILE_HEADERS, "content-disposition": content_disposition(artifact.name)}
    try:
        return await respond_with_artifact(service.store, artifact, request, headers)
    except FileError as error:
        raise NotFound("The content of this artifact is gone.") from error

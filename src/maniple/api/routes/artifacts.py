"""Files that runs made."""

import re
from typing import Annotated

from fastapi import Path
from fastapi.responses import FileResponse

from maniple.api.attachment import ATTACHMENT, HEADERS
from maniple.api.auth import CallerOf
from maniple.api.doors import keyed_router
from maniple.api.problems import problems
from maniple.api.state import ServiceOf
from maniple.errors import FileError
from maniple.runs import NotFound

router = keyed_router("artifacts")
_ArtifactPath = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9-]+$", description="The file")]
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}", re.I)
_FILE = {
    200: ATTACHMENT,
    206: {"description": "The part of it that a Range header asks for"},
    416: {"description": "There is no such part"},
}


@router.get(
    "/api/artifacts/{artifact_id}",
    summary="Read a file that a run made",
    response_class=FileResponse,
    responses={**_FILE, **problems(404)},
)
async def read_artifact(artifact_id: _ArtifactPath, service: ServiceOf, caller: CallerOf) -> FileResponse:
    """The file as an attachment: a browser saves it and never shows or runs it here."""
    artifact = await service.store.artifacts.get(artifact_id, caller.owner)
    if artifact is None:
        raise NotFound("There is no such artifact.")
    try:
        path = await service.store.artifacts.open(artifact)
    except FileError as error:
        raise NotFound("The content of this artifact is gone.") from error
    known = _MEDIA_TYPE.fullmatch(artifact.media_type)
    media_type = artifact.media_type if known else "application/octet-stream"
    return FileResponse(path, media_type=media_type, filename=artifact.name, headers=HEADERS)

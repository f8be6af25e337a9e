"""What clients are told of the files of a conversation; sizes are in bytes."""

from urllib.parse import quote

from pydantic import BaseModel

from maniple.sandbox import StoredUpload


class ThreadFile(BaseModel):
    """A file; `uploaded` says that the user put it there."""

    path: str
    size: int
    uploaded: bool
    url: str

    @classmethod
    def of(cls, thread_id: str, path: str, size: int, *, is_upload: bool) -> "ThreadFile":
        """Return what is told of a file."""
        return cls(path=path, size=size, uploaded=is_upload, url=_url(thread_id, path))


class ThreadFiles(BaseModel):
    """The files by path; `has_more` says that there are others."""

    files: list[ThreadFile]
    has_more: bool


class StoredFile(BaseModel):
    """A file as it was stored; `sha256` is in hex, and `replaced` says that one of its name was there."""

    path: str
    size: int
    sha256: str
    replaced: bool
    url: str

    @classmethod
    def of(cls, thread_id: str, stored: StoredUpload) -> "StoredFile":
        """Return what is told of an upload."""
        given = stored.upload
        return cls(
            path=given.path,
            size=given.size,
            sha256=given.sha256,
            replaced=stored.replaced,
            url=_url(thread_id, given.path),
        )


class StoredFiles(BaseModel):
    """The files in the order in which they were sent."""

    files: list[StoredFile]


def _url(thread_id: str, path: str) -> str:
    return f"/api/threads/{quote(thread_id, safe='')}/files/{quote(path)}"

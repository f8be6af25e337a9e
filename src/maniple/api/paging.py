"""Lists in pages, newest first."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from pydantic import FiniteFloat
from pydantic.json_schema import SkipJsonSchema

from maniple.store import RunRecord, Thread

PageLimit = Annotated[int, Query(ge=1, le=100, description="Most to return")]
PageBefore = Annotated[
    FiniteFloat | SkipJsonSchema[None], Query(description="`next_before` of the page before")
]


def next_before(page: Sequence[Thread | RunRecord], limit: int) -> float | None:
    """Return what asks for the page after this one; None when it is the last."""
    return page[-1].created_at if len(page) == limit else None

"""The open service as a dependency of all routes."""

from typing import Annotated

from fastapi import Depends, Request

from maniple.service import Service


async def service_of(request: Request) -> Service:
    """Return the open service of this process."""
    # Asynchronous without waiting: FastAPI runs other dependencies in a thread.
    return request.app.state.service


ServiceOf = Annotated[Service, Depends(service_of)]

"""What clients are told of the service itself."""

from typing import Any, Literal

from pydantic import BaseModel


class Problem(BaseModel):
    """Why a request is refused: in words (for a body that does not fit, a list of where), and as a code."""

    detail: str | list[dict[str, Any]]
    code: str


class Missing(BaseModel):
    """A recording that is not there, in LangManus's words."""

    detail: str = "File not found"


class TeamMember(BaseModel):
    """A member of the team as the old client lists it."""

    name: str
    desc: str
    is_optional: bool


class TeamMembers(BaseModel):
    """Everyone who may be chosen, by name."""

    team_members: dict[str, TeamMember]


class Health(BaseModel):
    """The process is alive; which model answers, and what is absent. Strangers learn only the first."""

    status: Literal["ok"] = "ok"
    model: str = ""
    notices: list[str] = []


class Ready(BaseModel):
    """Whether one part is ready, or else why it is not."""

    ready: bool
    why: str = ""


class Readiness(BaseModel):
    """Whether runs can be answered, and each part on its own.

    For `ready` the store is, and the models are that every run needs; `model` speaks of all of them, `mcp` of
    each MCP server by its name.
    """

    ready: bool
    store: Ready
    model: Ready
    search: Ready
    sandbox: Ready
    packages: Ready
    browser: Ready
    files: Ready
    mcp: dict[str, Ready]

"""Who may be named in a request: the built-in members, and those that the settings add."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from maniple.api.schemas.asking import NOBODY
from maniple.config import TeamSettings
from maniple.text import whole
from maniple.types import GENERAL, WORKERS, Worker


def refuse_strangers(names: Sequence[str] | None, known: Iterable[Worker]) -> None:
    """Raise the `RequestValidationError` of `team_members` when somebody in it is nobody's name."""
    if unknown := [whole(name) for name in names or () if name not in (known := tuple(known))]:
        words = f"no such team member: {', '.join(unknown)}; known are {', '.join(known)}"
        _refuse("value_error", "team_members", f"Value error, {words}", names)


def refuse_stranger(name: str | None, known: Iterable[Worker]) -> None:
    """Raise the `RequestValidationError` of an `agent_name` that is nobody's."""
    if name is not None and name not in (known := tuple(known)):
        *others, last = (f"'{one}'" for one in known)
        _refuse("literal_error", "agent_name", f"Input should be {', '.join(others)} or {last}", name)


def refuse_agent(name: str | None, alone: Iterable[Worker]) -> None:
    """Raise the `RequestValidationError` of an `agent` that does not work alone here."""
    if name and name not in (alone := tuple(alone)):
        there = ", ".join(alone) or f"none; team.members in the server's settings can name {GENERAL}"
        words = f"no agent {whole(name)} works alone here; known: {there}"
        _refuse("value_error", "agent", f"Value error, {words}", name)


def _refuse(kind: str, field: str, words: str, given: Any) -> None:
    raise RequestValidationError([{"type": kind, "loc": ("body", field), "msg": words, "input": given}])


def document_members(app: FastAPI, team: TeamSettings) -> None:
    """Have the service's OpenAPI document name those whom the settings add to the team."""
    names, alone = list(team.workers), [*NOBODY, *({GENERAL} & {*team.members})]

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            _rename(FastAPI.openapi(app), {WORKERS: names, NOBODY: alone})
        return FastAPI.openapi(app)

    if names != list(WORKERS):
        app.openapi = openapi


def _rename(part: Any, lists: Mapping[tuple[str, ...], list[str]]) -> None:
    if isinstance(part, dict):
        if isinstance(part.get("enum"), list):
            part["enum"] = lists.get(tuple(part["enum"]), part["enum"])
        for below in part.values():
            _rename(below, lists)
    elif isinstance(part, list):
        for below in part:
            _rename(below, lists)

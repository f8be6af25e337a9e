"""Who is on the team, as data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from maniple.types import AgentName, LLMType, Worker


@dataclass(frozen=True, slots=True)
class Role:
    """One worker: what the planner is told of it, what clients are told, and which model it uses."""

    name: Worker
    brief: str
    """Shown to the planner and the supervisor: what it does, what it cannot."""
    description: str
    """Shown to clients by `GET /api/team_members`."""
    is_optional: bool = True


ROLES: Mapping[Worker, Role] = {
    role.name: role
    for role in (
        Role(
            "researcher",
            "searches the web and reads pages; hands on facts with their sources. Cannot calculate.",
            "Searches the web, reads pages and collects facts with their sources",
            is_optional=False,
        ),
        Role(
            "coder",
            "writes and runs Python and bash in a sandbox; for all calculation and data work. No network.",
            "Writes and runs Python and bash for calculations, data and technical tasks",
        ),
        Role(
            "browser",
            "opens given web pages in a real browser. Slow: only where a page must be seen.",
            "Opens web pages in a real browser and takes out what is asked for",
        ),
        Role(
            "file_manager",
            "reads and writes files in the workspace; only when the user asks for a file.",
            "Reads and writes files in the workspace of the run",
        ),
        Role(
            "reporter",
            "writes the final answer from the results.",
            "Writes the final report from what the team found",
            is_optional=False,
        ),
    )
}

DEFAULT_LLMS: Mapping[AgentName, LLMType] = {
    "coordinator": "basic",
    "planner": "basic",
    "supervisor": "basic",
    "researcher": "basic",
    "coder": "basic",
    "browser": "vision",
    "file_manager": "basic",
    "reporter": "basic",
}


def briefs(
    members: Iterable[Worker], abilities: Mapping[Worker, str] = MappingProxyType({})
) -> list[dict[str, str]]:
    """Return what a prompt says of each member: its name, its brief, and what it can do beside its role."""
    return [
        {"name": name, "brief": f"{ROLES[name].brief} {abilities.get(name, '')}".rstrip()} for name in members
    ]

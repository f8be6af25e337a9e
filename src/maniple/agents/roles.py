"""Who is on the team, as data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from langchain_core.messages import BaseMessage

from maniple.config import RoleSettings, TeamSettings
from maniple.prompts import check_template, render, render_own
from maniple.types import AGENT_MARK, AGENTS, GENERAL, AgentName, LLMType, Worker


@dataclass(frozen=True, slots=True)
class Role:
    """One worker: what the planner is told of it, what clients are told, and which model it uses."""

    name: Worker
    brief: str
    """Shown to the planner and the supervisor: what it does, what it cannot."""
    description: str
    """Shown to clients by `GET /api/team_members`."""
    is_optional: bool = True
    llm: LLMType = "basic"
    has_files: bool = False
    """Whether it works in the workspace, and is told of the user's files there."""
    tools: tuple[str, ...] = ()
    """What one of the team's own works with, by name; the tools of the built-in ones are what is there."""
    prompt: str = ""
    """The template of one of the team's own; a built-in one's is the room's of prompts."""

    skills: str = ""
    """What its prompt says of the skills that it can read."""
    works_alone: bool = False
    """Whether a run may be given to it alone (`RunOptions.agent`)."""

    def instructions(self, **values: object) -> str:
        """Return the system prompt; `values` are what every worker's template may name."""
        own = render_own(self.prompt, **values) if self.prompt else render(self.name, **values)
        return "\n\n".join(filter(None, (own, self.skills)))


WORKSPACE_TOOLS = frozenset(
    {"bash_tool", "list_files", "python_repl_tool", "read_file", "search_files", "str_replace_editor"}
    | {"write_file"}
)

Roles = Mapping[Worker, Role]
"""Those who may be on a team by name, in the order in which they are told; the reporter is the last."""

ROLES: Roles = {
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
            has_files=True,
        ),
        Role(
            "browser",
            "works on web pages in a real browser. Slow: only where one must see or click.",
            "Works in a real browser: opens pages, clicks, fills in forms and takes out what is asked for",
            llm="vision",
            has_files=True,
        ),
        Role(
            "file_manager",
            "reads and writes files in the workspace; only when the user asks for a file.",
            "Reads and writes files in the workspace of the run",
            has_files=True,
        ),
        Role(
            "reporter",
            "writes the final answer from the results.",
            "Writes the final report from what the team found",
            is_optional=False,
        ),
    )
}
"""The built-in team."""


_MANUS = Role(
    GENERAL,
    "does a small task of several kinds alone, with all the tools; no substitute for the others' care.",
    "Does a whole task alone, with every tool",
    has_files=True,
    works_alone=True,
)


def build_roles(team: TeamSettings) -> Roles:
    """Return the built-in roles and those of the settings; raises `ConfigError` for a wrong prompt."""
    roles = {**ROLES, GENERAL: _MANUS, **{role.name: _own(role) for role in team.roles}}
    return {name: roles[name] for name in team.workers}


def _own(settings: RoleSettings) -> Role:
    check_template(settings.prompt.text, str(settings.prompt.path))
    return Role(
        settings.name,
        settings.brief,
        settings.description or settings.brief,
        is_optional=settings.optional,
        llm=settings.llm,
        has_files=not WORKSPACE_TOOLS.isdisjoint(settings.tools),
        tools=settings.tools,
        prompt=settings.prompt.text,
    )


def choose_llm(agent: AgentName, roles: Roles, chosen: Mapping[AgentName, LLMType]) -> LLMType:
    """Return the model type that an agent uses: the one that was `chosen` for it, else its role's."""
    role = roles.get(agent)
    return chosen.get(agent) or (role.llm if role else "basic")


def sort_workers(names: Collection[Worker], roles: Roles) -> list[Worker]:
    """Return `names` in the order of the roles; raises `ValueError` for one that has none."""
    if strangers := set(names) - set(roles):
        raise ValueError(f"no role is given for {', '.join(sorted(strangers))}; there are {', '.join(roles)}")
    return [name for name in roles if name in names]


def format_briefs(
    members: Iterable[Worker], roles: Roles, abilities: Mapping[Worker, str] = MappingProxyType({})
) -> list[dict[str, str]]:
    """Return what a prompt says of each member: its name, its brief, and what it can do beside its role."""
    return [
        {"name": name, "brief": f"{roles[name].brief} {abilities.get(name, '')}".rstrip()} for name in members
    ]


M = TypeVar("M", bound=BaseMessage)


def mark_author(author: AgentName, message: M) -> M:
    """Return `message` as the author's: by its name alone it could be a user's who is called so."""
    mark = {**message.additional_kwargs, AGENT_MARK: author}
    return message.model_copy(update={"name": author, "additional_kwargs": mark})


def find_author(message: BaseMessage) -> AgentName | None:
    """Return which agent wrote a message; `None` for the user's. Built-in names need no mark."""
    name = message.name
    return name if name in AGENTS or message.additional_kwargs.get(AGENT_MARK, "") == name else None

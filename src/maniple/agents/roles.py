"""The roles of the team's members."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from maniple.config import RoleSettings, TeamSettings
from maniple.prompts import check_template, render, render_own
from maniple.search import SearchProvider, find_outage
from maniple.types import AGENT_MARK, AGENTS, GENERAL, AgentName, LLMType, Worker


@dataclass(frozen=True, slots=True)
class Role:
    """A worker: its descriptions for the planner and for clients, its model type, tools and prompt."""

    name: Worker
    brief: str
    """What it can and cannot do; shown to the planner and the supervisor."""
    description: str
    """Shown to clients by `GET /api/team_members`."""
    is_optional: bool = True
    llm: LLMType = "basic"
    has_files: bool = False
    """Whether it works in the workspace. Its prompt then lists the user's files there."""
    tools: tuple[str, ...] = ()
    """The names of a configured worker's tools. Built-in workers get theirs from the capabilities."""
    prompt: str = ""
    """The prompt template of a configured worker; those of built-in workers are in `maniple.prompts`."""

    skills: str = ""
    """The part of its prompt about the skills that it can read."""
    resources: frozenset[str] = frozenset()
    """Exclusive resources: steps that share one run one after the other, in the plan's order."""
    works_alone: bool = False
    """Whether a run may be assigned to it alone (`RunOptions.agent`)."""

    def instructions(self, tool_names: Collection[str] = (), **values: object) -> str:
        """Return the system prompt, which states what can be done with the tools `tool_names`.

        `values` are the other variables of the template.
        """
        values = {"names": tool_names, **values}
        own = render_own(self.prompt, **values) if self.prompt else render(self.name, **values)
        return "\n\n".join(filter(None, (own, self.skills)))


WORKSPACE_TOOLS = frozenset(
    {"bash_tool", "list_files", "python_repl_tool", "read_file", "search_files", "str_replace_editor"}
    | {"write_file", "move_file", "copy_file", "delete_file", "create_directory", "directory_tree"}
    | {"file_operations", "undo_file_operations"}
)

Roles = Mapping[Worker, Role]
"""The possible members of a team by name, in the order of the prompts; the reporter is the last."""

ROLES: Roles = {
    role.name: role
    for role in (
        Role(
            "researcher",
            "searches the web and reads pages; gives facts with their sources. Runs no code.",
            "Searches the web, reads pages and collects facts with their sources",
            is_optional=False,
        ),
        Role(
            "coder",
            "writes and runs Python and bash in a sandbox; for all calculation and data work.",
            "Writes and runs Python and bash for calculations, data and technical tasks",
            has_files=True,
            resources=frozenset({"workspace"}),
        ),
        Role(
            "browser",
            "works on web pages in a real browser. Slow: only where one must see or click. It cannot hover, "
            "drag, hear, run code, or log in without the data for it. It can take pictures of pages.",
            "Works in a real browser: opens pages, clicks, fills in forms and takes out what is asked for",
            llm="vision",
            has_files=True,
            resources=frozenset({"browser"}),
        ),
        Role(
            "file_manager",
            "reads, writes, moves, copies and deletes files and folders, many at a time, and undoes it; only "
            "when the user asks for files.",
            "Reads, writes, moves, copies and deletes files in the workspace of the run",
            has_files=True,
            resources=frozenset({"workspace"}),
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
    resources=frozenset({"workspace", "browser"}),
    works_alone=True,
)


def build_roles(team: TeamSettings) -> Roles:
    """Return the built-in roles and those of the settings.

    Raises `ConfigError` for an invalid prompt template.
    """
    roles = {**ROLES, GENERAL: _MANUS, **{role.name: _own(role) for role in team.roles}}
    return {name: roles[name] for name in team.workers}


def _own(settings: RoleSettings) -> Role:
    check_template(settings.prompt.text, str(settings.prompt.path))
    has_files = not WORKSPACE_TOOLS.isdisjoint(settings.tools)
    return Role(
        settings.name,
        settings.brief,
        settings.description or settings.brief,
        is_optional=settings.optional,
        llm=settings.llm,
        has_files=has_files,
        resources=frozenset({"workspace"} if has_files else ()),
        tools=settings.tools,
        prompt=settings.prompt.text,
    )


_READER_BRIEF = (
    "has no web search: it reads pages whose full URL is known, and says what it knows for certain. "
    "Runs no code."
)


def without_search(roles: Roles) -> Roles:
    """Return the roles of a team without a web search, or whose search is unavailable."""
    researcher = roles.get("researcher")
    return {**roles, "researcher": replace(researcher, brief=_READER_BRIEF)} if researcher else roles


async def find_current_roles(roles: Roles, search: SearchProvider | None) -> Roles:
    """Return the present roles: without a search while it is unavailable."""
    is_out = search is not None and await find_outage(search)
    return without_search(roles) if is_out else roles


def choose_llm(agent: AgentName, roles: Roles, chosen: Mapping[AgentName, LLMType]) -> LLMType:
    """Return the model type of an agent: the one in `chosen`, else that of its role."""
    role = roles.get(agent)
    return chosen.get(agent) or (role.llm if role else "basic")


def sort_workers(names: Collection[Worker], roles: Roles) -> list[Worker]:
    """Return `names` in the order of the roles; raises `ValueError` for a name without a role."""
    if unknown := set(names) - set(roles):
        raise ValueError(f"Unknown roles: {', '.join(sorted(unknown))}. Known roles: {', '.join(roles)}")
    return [name for name in roles if name in names]


def format_briefs(
    members: Iterable[Worker], roles: Roles, abilities: Mapping[Worker, str] = MappingProxyType({})
) -> list[dict[str, str]]:
    """Return name and brief of each member for a prompt; `abilities` are appended to the briefs."""
    return [
        {"name": name, "brief": f"{roles[name].brief} {abilities.get(name, '')}".rstrip()} for name in members
    ]


M = TypeVar("M", bound=BaseMessage)

_HANDOVER_MARK = "maniple_handover"
"""Marks an `AIMessage` that LangManus would store as a `HumanMessage`."""


def mark_author(author: AgentName, message: M) -> M:
    """Return `message` marked as the author's.

    The name alone is not enough, because a user may have it, too.
    """
    mark = {**message.additional_kwargs, AGENT_MARK: author}
    return message.model_copy(update={"name": author, "additional_kwargs": mark})


def as_ai_message(message: BaseMessage) -> BaseMessage:
    """Return a hand-over as an `AIMessage`, and any other message unchanged."""
    if not (isinstance(message, HumanMessage) and is_handover(message)):
        return message
    mark = {**message.additional_kwargs, _HANDOVER_MARK: True}
    return AIMessage(content=message.content, name=message.name, id=message.id, additional_kwargs=mark)


def is_handover(message: BaseMessage) -> bool:
    """Return whether an agent wrote the message for the team: a plan, a result or a report.

    LangManus stores these as a human's messages, and its clients receive them with the role `user`.
    """
    if find_author(message) is None:
        return False
    return isinstance(message, HumanMessage) or _HANDOVER_MARK in message.additional_kwargs


def find_author(message: BaseMessage) -> AgentName | None:
    """Return the agent that wrote a message; `None` for the user. Built-in names need no mark."""
    name = message.name
    return name if name in AGENTS or message.additional_kwargs.get(AGENT_MARK, "") == name else None

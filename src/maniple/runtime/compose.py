"""The composition root: the one place where settings become objects."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.agents import ROLES, Roles, build_roles
from maniple.agents.compact import CompactBrowser as PageReading
from maniple.browser import Browser
from maniple.config import Settings, load_settings
from maniple.graph import Team, TeamRules, build_graph, members_of
from maniple.llms import ChatModels
from maniple.llms.embedded import Progress
from maniple.prompts import preload
from maniple.runtime.answering import Answering, open_models
from maniple.runtime.endpoints import ModelUse, uses_of
from maniple.runtime.mcp import abilities_of
from maniple.runtime.progress import LineProgress
from maniple.runtime.toolbox import open_equipment
from maniple.runtime.workers import build_workers
from maniple.sandbox import Sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.types import WORKERS, Worker

if TYPE_CHECKING:
    from maniple.mcp import McpServers


@dataclass(frozen=True, slots=True)
class Runtime:
    """An open team and what people should know of it."""

    graph: Team
    settings: Settings
    answering: Answering
    notices: tuple[str, ...] = ()
    """One sentence for each thing that is absent, with how to get it."""
    missing: Mapping[Worker, str] = field(default_factory=dict)
    """Why a worker lacks what it works with."""
    sandbox: Sandbox | None = None
    """Where the team's code runs."""
    uses: tuple[ModelUse, ...] = ()
    """Which endpoints each role depends on."""
    roles: Roles = field(default_factory=lambda: ROLES)
    """Who may be on the team."""
    mcp: "McpServers | None" = None
    """The MCP servers, if any are configured."""
    browser: Browser | None = None
    """Where the team works in pages; each thread has tabs of its own."""
    only_reads: bool = False
    """Whether the browser's model is too small for more than reading the page that a task names."""

    @property
    def alone(self) -> list[Worker]:
        """Who can be given a run alone, as the settings have it."""
        return [name for name in members_of(self.graph) if self.roles[name].works_alone]

    @property
    def warning(self) -> str:
        """What is to be said at each run: that the code in it runs unprotected; else ""."""
        is_unsafe = "coder" not in self.missing and self.settings.sandbox.backend == "unsafe-local"
        return UNSAFE if is_unsafe else ""


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
    on_call: Collection[Worker] = (),
) -> AsyncIterator[Runtime]:
    """Open everything the team needs, and close it again.

    `progress` hears of the embedded model's fetching and loading; without one the log does. Those `on_call`
    can be given a run, or go on with one of theirs, though the settings leave them off the team. Raises
    `ConfigError`, `ModelError` or `EmbeddedModelError` when the team cannot answer at all; whatever else is
    absent becomes a notice.
    """
    async with AsyncExitStack() as stack:
        team = settings.team
        at_hand = settings.model_copy(update={"team": team.having(*on_call)})
        roles = await asyncio.to_thread(build_roles, at_hand.team)
        roles = {
            name: replace(role, works_alone=role.works_alone or name in on_call)
            for name, role in roles.items()
        }
        opening = open_models(settings, progress or LineProgress())
        models, answering = await stack.enter_async_context(opening)
        equipment = await open_equipment(at_hand, stack)
        await asyncio.to_thread(preload)
        workers = build_workers(at_hand.team, models, equipment.toolbox, roles)
        named = {name: worker for name, worker in workers.items() if name in team.enabled}
        graph = build_graph(
            models,
            workers,
            rules=TeamRules(
                team.llms,
                team.supervisor,
                team.step_retries,
                team.max_plan_steps,
                team.max_plan_adaptations,
                team.max_clarifications,
                abilities_of(settings.mcp, workers),
                roles,
                on_call=workers.keys() - named.keys(),
            ),
            search=equipment.search,
            files=equipment.files,
            checkpointer=checkpointer,
        )
        borrowed = () if answering.embedded else _borrowed(models)
        notices = (*settings.notices, *borrowed, *equipment.notices, *_left_out(team.enabled, workers))
        uses = uses_of(models, team.llms, named, roles)
        roles = {name: roles[name] for name in team.workers}
        yield Runtime(
            graph,
            settings,
            answering,
            notices,
            equipment.toolbox.missing,
            equipment.sandbox,
            uses,
            roles,
            equipment.mcp,
            equipment.browser,
            isinstance(workers.get("browser"), PageReading),
        )


@asynccontextmanager
async def open_team(
    settings: Settings | None = None,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
) -> AsyncIterator[Team]:
    """Open the team as a compiled graph, to be run or to be a node of another graph.

    Without settings they are read from `conf.yaml`, `.env` and the environment. Without a checkpointer the
    team inherits that of the graph it is embedded in. When no model is configured or running here, one of
    1.1 GB is fetched once: `progress` hears of it, or else the log `maniple.progress` at level INFO.
    """
    settings = settings or await asyncio.to_thread(load_settings)
    async with open_runtime(settings, checkpointer=checkpointer, progress=progress) as runtime:
        yield runtime.graph


def _left_out(enabled: Sequence[Worker], workers: Collection[Worker]) -> tuple[str, ...]:
    """Say who is too much for the model; who else is left out, and why, is said elsewhere."""
    names = [name for name in enabled if name not in WORKERS and name not in workers]
    if not names:
        return ()
    is_small = "a small model (profile: compact) follows only the prompts that come with it"
    return (f"On this team there is no {', no '.join(names)}: {is_small}. Configure another model.",)


def _borrowed(models: ChatModels) -> tuple[str, ...]:
    """Say once which model types have no model of their own."""
    kinds = models.borrowed()
    if not kinds:
        return ()
    place = "their places" if len(kinds) > 1 else "its place"
    return (f"No {' and no '.join(kinds)} model is configured; the basic one takes {place}.",)

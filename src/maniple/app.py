"""The composition root: the one place where settings become objects.

The HTTP service, the terminal, the MCP server and `open_team` open what they need here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.agents import Agent, Roles, build_roles, without_search
from maniple.agents.middleware.item_pictures import ItemPictureReader, PictureDescriber
from maniple.agents.offers import Offer, join_abilities
from maniple.agents.profiles import build_workers, reads_pages_only
from maniple.agents.team_models import (
    Answering,
    GivenModels,
    LineProgress,
    ModelUse,
    open_models,
    use_models,
    uses_of,
)
from maniple.browser import Browser
from maniple.capabilities import model_services, open_capabilities
from maniple.capabilities.base import McpConnections, TeamBrowser, UploadedFiles
from maniple.capabilities.mcp import abilities_of
from maniple.capabilities.workspace import workspaces_of
from maniple.config import Settings, TeamSettings, load_settings
from maniple.graph import Team, TeamRules, TeamServices, build_graph, members_of
from maniple.llms import ChatModels
from maniple.llms.embedded import Progress
from maniple.prompts import preload
from maniple.sandbox import Sandbox
from maniple.sandbox.backends.local import WARNING as UNSAFE
from maniple.scope.budget import Budget, load_prices
from maniple.search import SearchProvider
from maniple.tools.item_search import ItemSearch
from maniple.tools.items import ThreadItems
from maniple.tools.made_files import MadeFiles
from maniple.tools.registry import check_approval
from maniple.tools.web import TeamSearch
from maniple.tools.web_pictures import WebPictures
from maniple.types import GENERAL, WORKERS, EngineRole, Worker
from maniple.workspace import Workspaces

if TYPE_CHECKING:
    from maniple.mcp import McpServers
    from maniple.redaction import Redactor
    from maniple.report_files import ReportRenderer
    from maniple.runs import EngineConfig, ExecutionEnvironment, RunTelemetry
    from maniple.runs.in_process import InProcessEngine
    from maniple.runs.queue.engine import QueueEngine
    from maniple.runs.teams import TeamSource
    from maniple.store import Store
    from maniple.telemetry.metrics import Metrics
    from maniple.telemetry.tracing import Tracing

Kind = Literal["server", "chat"]
WORKS_ALONE: Mapping[Kind, tuple[Worker, ...]] = {"server": (GENERAL,), "chat": (GENERAL, "browser")}
"""The workers that a run can be given to alone, although the settings leave them off the team."""
_CHAT_DRAIN_SECONDS = 0.5
"""A person waits for the prompt of the shell."""


async def _do_nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Runtime:
    """An open team and what people should know of it."""

    graph: Team
    models: ChatModels
    settings: Settings
    answering: Answering
    offer: Offer
    """What all capabilities give to the team."""
    uses: tuple[ModelUse, ...]
    """Which endpoints each role depends on."""
    roles: Roles
    """Who may be on the team."""
    notices: tuple[str, ...]
    """One sentence for each thing that is absent, with how to get it."""
    only_reads: bool
    """Whether the browser's model is too small for more than reading the page that a task names."""
    builder: TeamBuilder
    """Builds the same team over other models."""
    close_models: Callable[[], Awaitable[None]] = _do_nothing
    """Closes the models before the rest, when others have taken their place."""

    def team_with(self, model: str) -> Team:
        """Return the same team with another configured model as its basic one.

        Blocks. Raises `UnconfiguredModel`.
        """
        models = self.models.with_basic(model)
        return self.builder.build(models, self.answering, self.settings).graph

    @property
    def missing(self) -> Mapping[Worker, str]:
        """Why a worker lacks what it works with."""
        return self.offer.unavailable

    @property
    def sandbox(self) -> Sandbox | None:
        """Where the team's code runs."""
        return self.offer.service(Sandbox)

    @property
    def browser(self) -> Browser | None:
        """Where the team works in pages; each thread has tabs of its own."""
        found = self.offer.service(TeamBrowser)
        return found.browser if found else None

    @property
    def search(self) -> SearchProvider | None:
        """The web search, if one is configured."""
        found = self.offer.service(TeamSearch)
        return found.provider if found else None

    @property
    def mcp(self) -> McpServers | None:
        """The MCP servers, if any are configured."""
        found = self.offer.service(McpConnections)
        return found.servers if found else None

    @property
    def alone(self) -> list[Worker]:
        """The members that can be given a run alone, as the settings have it."""
        return [name for name in members_of(self.graph) if self.roles[name].works_alone]

    @property
    def warning(self) -> str:
        """What each run is warned of: that its code runs unprotected; else ""."""
        is_unsafe = "coder" not in self.missing and self.settings.sandbox.backend == "unsafe-local"
        return UNSAFE if is_unsafe else ""


@dataclass(frozen=True, slots=True)
class TeamBuilder:
    """Builds the team over any models, with all that is open already."""

    with_on_call: TeamSettings
    """The settings of the team, with the workers that are only on call."""
    offer: Offer
    roles: Roles
    checkpointer: BaseCheckpointSaver[Any] | None

    def build(self, models: ChatModels, answering: Answering, settings: Settings) -> Runtime:
        """Return the team over `models` of the `settings`; `answering` describes the basic one."""
        team, offer = settings.team, self._offer_over(models, settings)
        workers = build_workers(self.with_on_call, models, offer, self.roles)
        members = {name: worker for name, worker in workers.items() if name in team.enabled}
        borrowed = () if answering.embedded else _borrowed(models)
        return Runtime(
            graph=_compile(settings, models, workers, offer, self.roles, self.checkpointer),
            models=models,
            settings=settings,
            answering=answering,
            offer=offer,
            uses=uses_of(models, team.llms, members, self.roles),
            roles={name: self.roles[name] for name in team.workers},
            notices=(*settings.notices, *borrowed, *offer.notices, *_left_out(team.enabled, workers)),
            only_reads=reads_pages_only(workers.get("browser")),
            builder=self,
        )

    def _offer_over(self, models: ChatModels, settings: Settings) -> Offer:
        """Return the offer with the services that ask models on these ones."""
        services = {**self.offer.services, **model_services(settings, models)}
        if (reader := self.offer.service(ItemPictureReader)) is not None:
            services[ItemPictureReader] = replace(reader, describer=PictureDescriber(models))
        return replace(self.offer, services=services)


@dataclass(frozen=True, slots=True)
class App:
    """Everything that one program of maniple has opened."""

    settings: Settings
    runtime: Runtime
    store: Store
    engine: InProcessEngine | QueueEngine
    engine_config: EngineConfig
    workspaces: Workspaces
    metrics: Metrics
    tracing: Tracing
    redactor: Redactor
    report_renderer: ReportRenderer
    """Renders reports as files."""


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    kind: Kind,
    progress: Progress | None = None,
    alone: bool = True,
    store: Store | None = None,
    role: EngineRole = "all",
) -> AsyncGenerator[App]:
    """Open store, team, engine, tracing and metrics, and close them again.

    A "server" continues the runs that an earlier one left behind; a "chat" does so when its person asks.
    `alone`: a server that has its database for itself; others stand beside that one. An open `store` is used
    instead of that of the settings, and not closed. `role`: what a server does where PostgreSQL keeps the
    runs, which several processes may drive. Raises the `ManipleError` that prevents it.
    """
    # An embedded team (`open_team`) does without the imports of these.
    from maniple.report_files import ReportRenderer
    from maniple.runs import ExecutionEnvironment, RunTelemetry, open_engine
    from maniple.schedules import ConversationSchedules, local_zone
    from maniple.telemetry.metrics import Metrics
    from maniple.telemetry.tracing import open_tracing

    metrics, config = Metrics(), _engine_config(settings, kind)
    is_queue = kind == "server" and store is None and settings.store.backend == "postgres"
    async with (
        open_tracing(settings.telemetry, config.redactor) as tracing,
        _use_store(store, settings, kind, alone=alone and not is_queue) as opened_store,
        open_runtime(
            settings,
            checkpointer=opened_store.checkpointer,
            progress=progress,
            on_call=WORKS_ALONE[kind],
            # A person in the terminal asks soon; a server may wait for its first run for days.
            deferred=kind == "server",
        ) as runtime,
    ):
        workspaces = runtime.offer.service(Workspaces)
        if workspaces is None:  # the team works without them, but earlier threads may have files
            workspaces = await asyncio.to_thread(workspaces_of, settings)
        telemetry = RunTelemetry(metrics, tracing.callbacks)
        zone = await asyncio.to_thread(local_zone)
        environment = ExecutionEnvironment(
            workspaces,
            runtime.sandbox,
            runtime.warning,
            # The request of a run has its owner.
            lambda request: ConversationSchedules(opened_store.schedules, request, config.redactor, zone),
        )
        source = source_of(runtime)
        opening = (
            _open_queue_engine(source, opened_store, role, config, telemetry, environment)
            if is_queue
            else open_engine(
                source,
                opened_store,
                kind=kind,
                config=config,
                telemetry=telemetry,
                environment=environment,
            )
        )
        async with opening as engine:
            yield App(
                settings=settings,
                runtime=replace(runtime, notices=(*runtime.notices, *tracing.notices)),
                store=opened_store,
                engine=engine,
                engine_config=config,
                workspaces=workspaces,
                metrics=metrics,
                tracing=tracing,
                redactor=config.redactor,
                report_renderer=ReportRenderer(runtime.browser, runtime.missing.get("browser", "")),
            )


@asynccontextmanager
async def _open_queue_engine(
    source: TeamSource,
    store: Store,
    role: EngineRole,
    config: EngineConfig,
    telemetry: RunTelemetry,
    environment: ExecutionEnvironment,
) -> AsyncGenerator[QueueEngine]:
    from maniple.runs.queue.opening import open_queue
    from maniple.store.postgres.store import PostgresStore

    assert isinstance(store, PostgresStore)
    async with open_queue(
        source, store, role=role, config=config, telemetry=telemetry, environment=environment
    ) as opened:
        yield opened.engine


def source_of(runtime: Runtime) -> TeamSource:
    """Return the teams over the models of a runtime, for an engine."""
    from maniple.runs.teams import TeamSource

    return TeamSource(runtime.graph, runtime.team_with, runtime.models.load, runtime.close_models)


def _use_store(
    store: Store | None, settings: Settings, kind: Kind, *, alone: bool
) -> AbstractAsyncContextManager[Store]:
    from maniple.store.configured import open_configured_store, open_configured_store_patiently

    if store is not None:
        return nullcontext(store)
    if kind == "server":
        return open_configured_store_patiently(settings, server=alone)
    return open_configured_store(settings, server=False)  # a person sees at once what is wrong


def _engine_config(settings: Settings, kind: Kind) -> EngineConfig:
    from maniple.runs import RunLimits, make_engine_config

    if kind == "chat":
        return replace(make_engine_config(settings), drain_seconds=_CHAT_DRAIN_SECONDS)
    server = settings.server
    limits = RunLimits(server.max_runs + server.max_waiting_runs, server.max_runs_per_key)
    working = server.max_runs
    if settings.store.backend == "postgres":
        working = settings.runs.worker_concurrency or working
    return make_engine_config(settings, working=working, limits=limits)


@asynccontextmanager
async def open_runtime(
    settings: Settings,
    *,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
    on_call: Collection[Worker] = (),
    deferred: bool = False,
    given: GivenModels | None = None,
) -> AsyncGenerator[Runtime]:
    """Open everything the team needs, and close it again.

    `progress` reports the download and start of the embedded model; without one the log does. Workers
    `on_call` can be given a run, or continue one of theirs, though the settings leave them off the team.
    With `deferred`, `Runtime.models.load` must be awaited before the graph runs. `given` models are used
    instead of those of the settings.
    Raises `ConfigError`, `ModelError` or `EmbeddedModelError` when the team cannot answer at all; anything
    else that is absent becomes a notice.
    """
    await asyncio.to_thread(check_approval, settings)
    async with AsyncExitStack() as stack:
        team = settings.team
        with_on_call = settings.model_copy(update={"team": team.having(*on_call)})
        roles = await asyncio.to_thread(build_roles, with_on_call.team)
        roles = {
            name: replace(role, works_alone=role.works_alone or name in on_call)
            for name, role in roles.items()
        }
        opening = (
            open_models(settings, progress or LineProgress(), deferred=deferred)
            if given is None
            else use_models(given, settings.server.stream_rate)
        )
        own = await stack.enter_async_context(AsyncExitStack())
        models, answering = await own.enter_async_context(opening)
        offer = await open_capabilities(with_on_call, stack, models)
        if offer.service(TeamSearch) is None:
            roles = without_search(roles)
        await asyncio.to_thread(preload)
        builder = TeamBuilder(with_on_call.team, offer, roles, checkpointer)
        runtime = await asyncio.to_thread(builder.build, models, answering, settings)
        # Capabilities of other packages may use the models for as long as the program runs.
        yield runtime if settings.capabilities else replace(runtime, close_models=own.aclose)


@asynccontextmanager
async def open_team(
    settings: Settings | None = None,
    *,
    models: GivenModels | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    progress: Progress | None = None,
) -> AsyncGenerator[Team]:
    """Open the team as a compiled graph, to be run or to be a node of another graph.

    Without settings they are read from `conf.yaml`, `.env` and the environment. Without a checkpointer the
    team inherits that of the graph it is embedded in. When no model is configured or running here, one of
    1.1 GB is fetched once and reported to `progress`, or else to the log `maniple.progress` at level INFO.
    `models` are your own chat models in place of those of the settings: one for all work, or a mapping from
    `basic`, `reasoning` and `vision`.
    """
    from maniple.runs.stream_events import report_stream_events

    settings = settings or await asyncio.to_thread(load_settings)
    async with open_runtime(settings, checkpointer=checkpointer, progress=progress, given=models) as runtime:
        runtime.graph.loop = asyncio.get_running_loop()
        report_stream_events(runtime.graph)
        yield runtime.graph


def _compile(
    settings: Settings,
    models: ChatModels,
    workers: Mapping[Worker, Agent],
    offer: Offer,
    roles: Roles,
    checkpointer: BaseCheckpointSaver[Any] | None,
) -> Team:
    team = settings.team
    rules = TeamRules(
        team.llms,
        team.supervisor,
        team.step_retries,
        team.max_plan_steps,
        team.max_plan_adaptations,
        team.max_clarifications,
        join_abilities(offer.abilities, abilities_of(settings.mcp, workers)),
        roles,
        on_call=workers.keys() - set(team.enabled),
        approval=frozenset(settings.runs.approval),
        budget=Budget(**settings.runs.budget.model_dump()),
        prices=load_prices(settings.models),
        parallel_steps=team.parallel_steps,
        depth=team.depth,
        message_type=team.message_type,
        report_style=settings.report.style,
    )
    search, files = offer.service(TeamSearch), offer.service(UploadedFiles)
    return build_graph(
        models,
        workers,
        rules=rules,
        services=TeamServices(
            search=search.provider if search else None,
            no_search="" if search else offer.unavailable.get("researcher", ""),
            files=files.names if files else None,
            items=offer.service(ThreadItems),
            web_pictures=offer.service(WebPictures),
            item_pictures=offer.service(ItemPictureReader),
            item_search=offer.service(ItemSearch),
            made_files=offer.service(MadeFiles),
        ),
        checkpointer=checkpointer,
    )


def _left_out(enabled: Sequence[Worker], workers: Collection[Worker]) -> tuple[str, ...]:
    """Name the own roles that a small model cannot serve; other absences have notices of their own."""
    names = [name for name in enabled if name not in WORKERS and name not in workers]
    if not names:
        return ()
    is_small = "a small model (profile: compact) follows only the prompts that come with it"
    return (f"On this team there is no {', no '.join(names)}: {is_small}. Configure another model.",)


def _borrowed(models: ChatModels) -> tuple[str, ...]:
    """Name the model types that have no model of their own."""
    kinds = models.types_using_basic()
    if not kinds:
        return ()
    place = "their places" if len(kinds) > 1 else "its place"
    return (f"No {' and no '.join(kinds)} model is configured; the basic one takes {place}.",)

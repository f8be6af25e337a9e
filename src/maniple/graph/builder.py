"""Builds the team's graph."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, MessagesState, StateGraph  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.graph.state import CompiledStateGraph  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import ROLES, Agent, Roles, choose_llm, sort_workers
from maniple.agents.compact_pictures import CompactPictures
from maniple.agents.middleware.item_pictures import ItemPictureReader
from maniple.agents.profiles import profile_of
from maniple.errors import ConfigError
from maniple.graph.invocation import InvocationNode, Node
from maniple.graph.lead import Lead
from maniple.graph.nodes import (
    ClarifyNode,
    CoordinatorNode,
    PlannerNode,
    ReviewNode,
    ScheduleNode,
    SoloNode,
    SupervisorNode,
    WorkerNode,
)
from maniple.graph.outcome import can_be_resumed
from maniple.graph.plan_edits import retry as retry_plan
from maniple.graph.sent_pictures import SentPictures
from maniple.graph.state import RunOptions, State, TeamInput, make_update
from maniple.graph.steering import MessageLead
from maniple.graph.waves import Waves
from maniple.langgraph_internals import (
    CHECKPOINTER,
    stores_only_at_the_end,
    streams_events,
    takes_custom_parts,
)
from maniple.llms import ChatModels
from maniple.scope.budget import Budget, Prices
from maniple.scope.context import SCOPE_KEY, configurable
from maniple.scope.registry import RunScopeRegistry
from maniple.search import SearchProvider
from maniple.tools.files import NamedFiles
from maniple.tools.item_search import ItemSearch
from maniple.tools.items import ThreadItems
from maniple.tools.made_files import MadeFiles, TeamFile
from maniple.tools.web_pictures import WebPictures
from maniple.types import (
    AGENT_MARK,
    DIRECTORS,
    RUN_MARK,
    AgentName,
    Depth,
    LLMType,
    ReportStyle,
    Worker,
    is_mapping,
)

# A plan of 12 steps, each tried three times, is some eighty steps of the graph; LangGraph stops at 25.
RECURSION_LIMIT = 500
_ON_CALL = "maniple_on_call"
_SILENT = ("clarify", "review", "schedule", "solo")
"""Nodes without a turn of their own in the events."""


Steps = Callable[[RunnableConfig], AsyncGenerator[Any]]
"""Streams the steps of a graph with a configuration."""


class StepObserver(Protocol):
    """Yields the steps of a team, and what it reports in between."""

    def __call__(
        self, team: "Team", steps: Steps, given: Any, config: RunnableConfig, *, is_nested: bool
    ) -> AsyncGenerator[Any]: ...


class Team(CompiledStateGraph[Any, RunOptions, Any, Any]):
    """The compiled graph. A run is limited by its plan and budget, not by a parent's `recursion_limit`."""

    def __init__(
        self,
        *,
        scopes: RunScopeRegistry,
        message_lead: MessageLead,
        basic_model: BaseChatModel,
        made_files: MadeFiles | None = None,
        **parts: Any,
    ) -> None:
        super().__init__(**parts)
        self._made_files = made_files
        self.message_lead = message_lead
        """Decides about messages that the user sends during a run."""
        self.basic_model = basic_model
        self.scopes = scopes
        """The scopes of runs that are not driven by an engine."""

        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop to which the team's connections belong; None if it has none."""
        self.observe_steps: StepObserver | None = None
        """Reports in the streams of `astream_events(version="v3")`."""

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Stream the graph's steps with a limit of at least `RECURSION_LIMIT`; `invoke` etc. call this.

        A context that is a mapping may have other keys than `RunOptions`, as those of adapters do. With the
        input None, an embedded run that has ended without all results does the missing steps again.

        Raises `ConfigError` for an input without messages, and on another event loop than the team's.
        """
        self._check_call(input)
        if config is not None and "recursion_limit" in config:
            limit = max(config["recursion_limit"], RECURSION_LIMIT)
            config = {**config, "recursion_limit": limit}
        if isinstance(context := options.get("context"), Mapping):
            options["context"] = RunOptions.from_mapping(cast("Mapping[str, Any]", context))
        if input is None and config is not None:
            input = await self._resumed(config)
        if self._needs_sync(config, options):
            options["durability"] = "sync"
        async with aclosing(self._steps(input, config, options)) as steps:
            try:
                async for step in steps:
                    yield step
            except GraphInterrupt as error:
                # LangGraph collects the questions of concurrent steps from several places.
                unique = {one.id: one for one in error.args[0]}
                raise GraphInterrupt(tuple(unique.values())) from None

    def _steps(
        self, input: Any, config: RunnableConfig | None, options: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        """Return the steps of the graph, observed where the stream around them takes typed events."""

        def stream(config: RunnableConfig | None) -> AsyncGenerator[Any]:
            steps = super(Team, self).astream(input, config, **options)  # pyright: ignore[reportUnknownMemberType] - LangGraph's type
            return cast("AsyncGenerator[Any]", steps)

        whole = ensure_config(config)
        given = whole.get("configurable", {})
        # Only streams of version 3 have parts of this form; any other team is a part of a graph around it.
        is_outermost = "custom" in (options.get("stream_mode") or ()) and options.get("version") == "v2"
        is_wanted = streams_events(given) and (is_outermost or takes_custom_parts(given))
        if self.observe_steps is None or not is_wanted:
            return stream(config)
        return self.observe_steps(self, stream, input, whole, is_nested=not is_outermost)

    async def files_of(self, thread_id: str) -> list[TeamFile]:
        """Return the files that the team made or changed in a thread, as they are now; none for a new thread.

        Raises `ConfigError` if the team has no workspaces.
        """
        if self._made_files is None:
            raise ConfigError(
                "This team has no workspaces, so it makes no files. Open it with open_team, with a data_dir "
                "that can be written."
            )
        return await self._made_files.list(thread_id)

    def _check_call(self, input: Any) -> None:
        if self.loop is not None and asyncio.get_running_loop() is not self.loop:
            raise ConfigError(
                "The team was opened on another event loop, to which its connections belong. Open it with "
                "open_team on the loop that calls it, or call it there (asyncio.run_coroutine_threadsafe)."
            )
        if input is None or isinstance(input, Command):
            return
        given: Mapping[str, Any] = input if is_mapping(input) else {}
        if not given.get("messages") and not hasattr(cast("object", input), "messages"):
            others = ", ".join(str(key) for key in given if key != "messages")
            what = f"no messages, but {others}" if others else "no messages"
            raise ConfigError(
                f'The team was given no question: {what}. Invoke it with {{"messages": '
                '[HumanMessage("…")]}; a graph around it must have the channel `messages`.'
            )

    def _needs_sync(self, config: RunnableConfig | None, options: Mapping[str, Any]) -> bool:
        """Return whether checkpoints have to be stored before the next step, which nobody has decided.

        LangGraph stores them meanwhile by default. After a crash a model would be asked again for the calls
        that it had written, and their records, whose names are in the lost answer, would not be found.
        """
        given = {**configurable(), **(config or {}).get("configurable", {})}
        own = cast("object", self.checkpointer)  # pyright: ignore[reportUnknownMemberType] - LangGraph's type
        # What a parent lends takes the place of the team's own, also a parent that has none.
        is_stored = own is not False and isinstance(given.get(CHECKPOINTER, own), BaseCheckpointSaver)
        is_decided = options.get("durability") or "checkpoint_during" in options
        return is_stored and not is_decided and not stores_only_at_the_end(given)

    async def _resumed(self, config: RunnableConfig) -> Any:
        """Return the input that does the missing steps of an ended run again; None for any other run."""
        given = config.get("configurable", {})
        is_own = SCOPE_KEY not in given and RUN_MARK not in config.get("metadata", {})
        saver = cast("object", self.checkpointer)  # pyright: ignore[reportUnknownMemberType] - LangGraph's type
        if not (is_own and given.get("thread_id") and isinstance(saver, BaseCheckpointSaver)):
            return None
        state = await self.aget_state(config)
        progress = can_be_resumed(state.values) if not state.next and not state.tasks else None
        if progress is None:
            return None
        plan = retry_plan(progress).to_state()
        return Command(goto="supervisor", update=make_update(plan=plan))


@dataclass(frozen=True, slots=True)
class TeamRules:
    """Settings of the team that do not depend on its members."""

    llms: Mapping[AgentName, LLMType] = field(default_factory=dict[AgentName, LLMType])
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = 1
    max_plan_steps: int = 12
    max_plan_adaptations: int = 1
    """How often the planner may replace the rest of a plan that does not work."""
    max_clarifications: int = 0
    """How many questions the coordinator may ask the user; each question is an interrupt."""
    abilities: Mapping[Worker, str] = field(default_factory=dict[Worker, str])
    """What members can do in addition to their roles, for the planner."""
    roles: Roles = field(default_factory=lambda: ROLES)
    """The roles of all possible members."""
    on_call: Collection[Worker] = ()
    """Workers who are not members of the team, but can be assigned a whole run alone."""
    approval: frozenset[str] = frozenset()
    """Tools that need the user's approval. This, `budget` and `prices` apply to runs without an engine."""
    budget: Budget = field(default_factory=Budget)
    prices: Mapping[str, Prices] = field(default_factory=dict[str, Prices])
    """The prices of models, by name."""
    parallel_steps: int = 4
    """How many steps of a plan may run concurrently."""
    depth: Depth = "standard"
    """How far a question is researched if the caller does not say it."""
    message_type: Literal["ai", "human"] = "ai"
    """The type of the messages with plans, results and reports. In LangManus they are human messages."""
    report_style: ReportStyle = "auto"
    """The style of reports where a run's options set none."""


@dataclass(frozen=True, slots=True)
class TeamServices:
    """What the nodes of the graph use in addition to models and workers."""

    search: SearchProvider | None = None
    """Searches before planning if the caller requests it. Plans also depend on whether it is available."""
    no_search: str = ""
    """Why there is no search, with the remedy."""
    files: NamedFiles | None = None
    """Lists the files that the user put into the workspace."""
    items: ThreadItems | None = None
    """Lists and mirrors the items of a thread."""
    web_pictures: WebPictures | None = None
    """Fetches the pictures at addresses in the user's messages."""
    item_pictures: ItemPictureReader | None = None
    """Reads and describes the pictures of a thread."""
    item_search: ItemSearch | None = None
    """Finds words in the items of a thread."""
    made_files: MadeFiles | None = None
    """Lists what the team made in a thread, for the program that embeds it."""


def build_graph(
    models: ChatModels,
    workers: Mapping[Worker, Agent],
    *,
    rules: TeamRules | None = None,
    services: TeamServices | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Team:
    """Compile the team's graph. Nothing is sent or opened.

    `workers` are the available members, including the reporter. Without a checkpointer, the graph inherits
    that of the graph in which it is embedded. Raises `ValueError` for a worker without a role in `rules`.
    """
    rules, services = rules or TeamRules(), services or TeamServices()
    everyone = sort_workers(workers.keys(), rules.roles)
    available = [name for name in everyone if name not in rules.on_call]

    def model_of(role: AgentName) -> BaseChatModel:
        return models.get(choose_llm(role, rules.roles, rules.llms))

    planner = PlannerNode(
        *(model_of("planner"), models.get("reasoning"), available, rules.max_plan_steps, services.search),
        abilities=rules.abilities,
        items=services.items,
        roles=rules.roles,
        models={name: model_of(name) for name in available},
        depth=rules.depth,
    )
    # A small model can write a plan from examples, but cannot change one.
    rewrites = all(profile_of(model).rewrites_plans for model in (planner.model, planner.deep_model))
    adaptations = rules.max_plan_adaptations if rewrites else 0
    lead = Lead(model_of("supervisor"), rules.step_retries, rules.roles, adaptations, services.search)
    supervisor = SupervisorNode(
        lead, available, rules.supervisor, rules.roles, rules.parallel_steps, rules.depth
    )
    message_lead = MessageLead(
        lead.model, rules.roles, rewrites, search=services.search, items=services.item_search
    )
    seen = services.item_pictures
    coordinator = CoordinatorNode(
        *(model_of("coordinator"), available, rules.max_clarifications, services.files),
        search=services.search,
        no_search=services.no_search,
        roles=rules.roles,
        pictures=CompactPictures(seen) if seen is not None else None,
    )
    scopes = RunScopeRegistry(rules.approval, rules.budget, rules.prices)
    pictures = None
    if services.items is not None:
        pictures = SentPictures(
            services.items, services.web_pictures, seen.read if seen is not None else None
        )
    nodes = _Nodes(scopes, rules.message_type, pictures)
    nodes.add("coordinator", coordinator, "planner", "clarify", "schedule", END, is_first=True)
    nodes.add("clarify", ClarifyNode(), "coordinator")
    nodes.add("schedule", ScheduleNode(), "coordinator")
    nodes.add("planner", planner, "supervisor", "review")
    nodes.add(
        "review", ReviewNode(available, supervisor.order_of, rules.max_plan_steps), "supervisor", "planner"
    )
    nodes.add("supervisor", supervisor, *everyone, "planner", "review", END)
    for name in everyone:
        node = WorkerNode(
            rules.roles[name],
            workers[name],
            lead,
            available,
            services.items,
            Waves(rules.roles, rules.parallel_steps),
            rules.report_style,
        )
        nodes.add(name, node, "supervisor", is_on_call=name in rules.on_call)
    nodes.begin([name for name in everyone if rules.roles[name].works_alone], services.files)
    compiled = nodes.graph.compile(checkpointer=checkpointer, name="maniple")  # pyright: ignore[reportUnknownMemberType] - LangGraph's type
    parts = {**vars(compiled), "config": {"recursion_limit": RECURSION_LIMIT}}
    return Team(
        scopes=scopes,
        message_lead=message_lead,
        basic_model=models.get("basic"),
        made_files=services.made_files,
        **parts,
    )


class _Nodes:
    """The graph under construction. Each node runs in the scope of its run."""

    def __init__(
        self,
        scopes: RunScopeRegistry,
        message_type: Literal["ai", "human"],
        pictures: SentPictures | None = None,
    ) -> None:
        self.graph = StateGraph(
            State, context_schema=RunOptions, input_schema=TeamInput, output_schema=MessagesState
        )
        self._scopes = scopes
        self._message_type: Literal["ai", "human"] = message_type
        self._pictures = pictures

    def add(
        self, name: str, node: Node, *destinations: str, is_first: bool = False, is_on_call: bool = False
    ) -> None:
        """Add a node. Nodes with turns in the events are marked with the agent's name."""
        metadata = {} if name in _SILENT else {AGENT_MARK: name, _ON_CALL: is_on_call}
        action = InvocationNode(node, self._scopes, is_first, self._message_type, self._pictures)
        self.graph.add_node(name, action, metadata=metadata, destinations=destinations)  # pyright: ignore[reportUnknownMemberType] - LangGraph's type

    def begin(self, alone: Sequence[Worker], files: NamedFiles | None) -> None:
        """Start with the coordinator, unless the run is assigned to one agent in `alone`."""
        if not alone:
            self.graph.add_edge(START, "coordinator")
            return

        def entrance(state: State, runtime: Runtime[Any]) -> str:
            return "solo" if RunOptions.of(runtime, state).agent in alone else "coordinator"

        self.add("solo", SoloNode(files), "supervisor", is_first=True)
        self.graph.add_conditional_edges(START, entrance, ["solo", "coordinator"])


def members_of(team: Team) -> list[Worker]:
    """Return the members of a compiled team in order."""
    nodes = (node.metadata or {} for node in team.builder.nodes.values())
    marks = (about.get(AGENT_MARK) for about in nodes if not about.get(_ON_CALL))
    return [mark for mark in marks if mark and mark not in DIRECTORS]

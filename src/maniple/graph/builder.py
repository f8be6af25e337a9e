"""Wire the team together."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from maniple.agents import ROLES, Agent, Roles, choose_llm, sort_workers
from maniple.agents.budget import Budget, Prices
from maniple.agents.profiles import profile_of
from maniple.agents.run_scope import RunScopeRegistry
from maniple.graph.invocation import InvocationNode, Node
from maniple.graph.nodes import (
    ClarifyNode,
    CoordinatorNode,
    PlannerNode,
    ReviewNode,
    SoloNode,
    SupervisorNode,
    WorkerNode,
)
from maniple.graph.state import RunOptions, State, TeamInput
from maniple.graph.waves import Waves
from maniple.llms import ChatModels
from maniple.search import SearchProvider
from maniple.tools.files import NamedFiles
from maniple.tools.items import ThreadItems
from maniple.types import AGENT_MARK, DIRECTORS, AgentName, LLMType, Worker

# A plan of 12 steps, each tried three times, is some eighty steps of the graph; LangGraph stops at 25.
RECURSION_LIMIT = 500
_ON_CALL = "maniple_on_call"
_SILENT = ("clarify", "review", "solo")
"""Nodes that say nothing of their own."""


class Team(CompiledStateGraph[Any, RunOptions, Any, Any]):
    """The compiled graph. Its plan and its budget bound a run, not a parent's `recursion_limit`."""

    def __init__(self, *, scopes: RunScopeRegistry, **parts: Any) -> None:
        super().__init__(**parts)
        self.scopes = scopes
        """The scopes of the runs that no engine drives."""

    def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream the graph's steps, up to `RECURSION_LIMIT` of them at least; every other call uses this."""
        if config is not None and "recursion_limit" in config:
            limit = max(config["recursion_limit"], RECURSION_LIMIT)
            config = {**config, "recursion_limit": limit}
        return super().astream(input, config, **options)


@dataclass(frozen=True, slots=True)
class TeamRules:
    """How the team works, whoever is on it."""

    llms: Mapping[AgentName, LLMType] = field(default_factory=dict)
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = 1
    max_plan_steps: int = 12
    max_plan_adaptations: int = 1
    """How often a plan that does not work is written anew from where it stands."""
    max_clarifications: int = 0
    """How often the coordinator may ask back; each question is an interrupt."""
    abilities: Mapping[Worker, str] = field(default_factory=dict)
    """What members can do beside their roles, for the planner."""
    roles: Roles = field(default_factory=lambda: ROLES)
    """Who may be on the team."""
    on_call: Collection[Worker] = ()
    """Workers who are not on the team: a run can only be given to them alone."""
    approval: frozenset[str] = frozenset()
    """Tools that run only after the user's approval; this and what follows is for runs without an engine."""
    budget: Budget = field(default_factory=Budget)
    prices: Mapping[str, Prices] = field(default_factory=dict)
    """What models cost, by name."""
    parallel_steps: int = 4
    """How many steps of a plan may run concurrently."""


@dataclass(frozen=True, slots=True)
class TeamServices:
    """What the nodes of the graph use beside models and workers."""

    search: SearchProvider | None = None
    """Searches before planning, when the caller asks for it."""
    files: NamedFiles | None = None
    """Names what the user put into the workspace."""
    items: ThreadItems | None = None
    """Lists and mirrors everything that a thread has."""


def build_graph(
    models: ChatModels,
    workers: Mapping[Worker, Agent],
    *,
    rules: TeamRules | None = None,
    services: TeamServices | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> Team:
    """Compile the team's graph; pure, so nothing is sent or opened.

    `workers` are who is available, the reporter among them, each of a role in `rules`, else `ValueError`;
    Without a checkpointer the graph inherits that of the graph it is embedded in.
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
    )
    # A small model can write a plan by examples, not change one.
    rewrites = all(profile_of(model).rewrites_plans for model in (planner.model, planner.deep_model))
    supervisor = SupervisorNode(
        *(model_of("supervisor"), available, rules.supervisor, rules.step_retries, rules.roles),
        max_adaptations=rules.max_plan_adaptations if rewrites else 0,
        parallel_steps=rules.parallel_steps,
    )
    coordinator = CoordinatorNode(
        model_of("coordinator"), available, rules.max_clarifications, services.files
    )
    scopes = RunScopeRegistry(rules.approval, rules.budget, rules.prices)
    nodes = _Nodes(scopes)
    nodes.add("coordinator", coordinator, "planner", "clarify", END, is_first=True)
    nodes.add("clarify", ClarifyNode(), "coordinator")
    nodes.add("planner", planner, "supervisor", "review")
    nodes.add("review", ReviewNode(available, rules.max_plan_steps), "supervisor", "planner")
    nodes.add("supervisor", supervisor, *everyone, "planner", END)
    for name in everyone:
        node = WorkerNode(
            rules.roles[name],
            workers[name],
            available,
            services.items,
            Waves(rules.roles, rules.parallel_steps),
        )
        nodes.add(name, node, "supervisor", is_on_call=name in rules.on_call)
    nodes.begin([name for name in everyone if rules.roles[name].works_alone], services.files)
    compiled = nodes.graph.compile(checkpointer=checkpointer, name="maniple")
    parts = {**vars(compiled), "config": {"recursion_limit": RECURSION_LIMIT}}
    return Team(scopes=scopes, **parts)


class _Nodes:
    """The graph that is put together, each node in the scope of its run."""

    def __init__(self, scopes: RunScopeRegistry) -> None:
        self.graph = StateGraph(
            State, context_schema=RunOptions, input_schema=TeamInput, output_schema=MessagesState
        )
        self._scopes = scopes

    def add(
        self, name: str, node: Node, *destinations: str, is_first: bool = False, is_on_call: bool = False
    ) -> None:
        """Add a node; those with turns of their own are marked for the events."""
        metadata = {} if name in _SILENT else {AGENT_MARK: name, _ON_CALL: is_on_call}
        action = InvocationNode(node, self._scopes, is_first)
        self.graph.add_node(name, action, metadata=metadata, destinations=destinations)

    def begin(self, alone: Sequence[Worker], files: NamedFiles | None) -> None:
        """Begin with the coordinator, unless the run is given to somebody who can work `alone`."""
        if not alone:
            self.graph.add_edge(START, "coordinator")
            return

        def entrance(state: State, runtime: Runtime[Any]) -> str:
            return "solo" if RunOptions.of(runtime, state).agent in alone else "coordinator"

        self.add("solo", SoloNode(files), "supervisor", is_first=True)
        self.graph.add_conditional_edges(START, entrance, ["solo", "coordinator"])


def members_of(team: Team) -> list[Worker]:
    """Return who is on a compiled team, in their order."""
    nodes = (node.metadata or {} for node in team.builder.nodes.values())
    marks = (about.get(AGENT_MARK) for about in nodes if not about.get(_ON_CALL))
    return [mark for mark in marks if mark and mark not in DIRECTORS]

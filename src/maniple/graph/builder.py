"""Wire the team together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from maniple.agents import ROLES, Agent, Roles, choose_llm, sort_workers
from maniple.agents.profiles import profile_of
from maniple.agents.run_scope import RunScope
from maniple.graph.nodes import (
    ClarifyNode,
    CoordinatorNode,
    PlannerNode,
    ReviewNode,
    SoloNode,
    SupervisorNode,
    WorkerNode,
)
from maniple.graph.state import RunOptions, State
from maniple.llms import ChatModels
from maniple.search import SearchProvider
from maniple.tools.files import NamedFiles
from maniple.tools.items import ThreadItems
from maniple.tools.run_context import SCOPE_KEY
from maniple.types import AGENT_MARK, DIRECTORS, AgentName, LLMType, Worker

Team = CompiledStateGraph[Any, RunOptions, Any, Any]

# A plan of 12 steps, each tried three times, is some eighty steps of the graph; LangGraph stops at 25.
RECURSION_LIMIT = 500
_ON_CALL = "maniple_on_call"


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
    Without a checkpointer the graph inherits that of
    the graph it is embedded in.
    """
    rules, services = rules or TeamRules(), services or TeamServices()
    everyone = sort_workers(workers.keys(), rules.roles)
    available = [name for name in everyone if name not in rules.on_call]

    def model_of(role: AgentName) -> BaseChatModel:
        return models.get(choose_llm(role, rules.roles, rules.llms))

    planner = PlannerNode(
        *(model_of("planner"), models.get("reasoning"), available, rules.max_plan_steps, services.search),
        abilities=rules.abilities,
        roles=rules.roles,
    )
    # A small model can write a plan by examples, not change one.
    rewrites = all(profile_of(model).rewrites_plans for model in (planner.model, planner.deep_model))
    supervisor = SupervisorNode(
        *(model_of("supervisor"), available, rules.supervisor, rules.step_retries, rules.roles),
        max_adaptations=rules.max_plan_adaptations if rewrites else 0,
    )
    graph = StateGraph(State, context_schema=RunOptions)
    coordinator = CoordinatorNode(
        model_of("coordinator"), available, rules.max_clarifications, services.files
    )
    graph.add_node("coordinator", coordinator, metadata={AGENT_MARK: "coordinator"})
    graph.add_node("clarify", ClarifyNode())
    graph.add_node("planner", planner, metadata={AGENT_MARK: "planner"})
    graph.add_node("review", ReviewNode(available, rules.max_plan_steps))
    mark = {AGENT_MARK: "supervisor"}
    graph.add_node("supervisor", supervisor, metadata=mark, destinations=(*everyone, "planner", END))
    for name in everyone:
        node = WorkerNode(rules.roles[name], workers[name], available, services.items)
        graph.add_node(name, node, metadata={AGENT_MARK: name, _ON_CALL: name in rules.on_call})
    _enter(graph, [name for name in everyone if rules.roles[name].works_alone], services.files)
    compiled = graph.compile(checkpointer=checkpointer, name="maniple")
    # For runs in a foreign graph; a run of ours brings its own scope along, which replaces this one.
    scopes = {SCOPE_KEY: RunScope()}
    return compiled.with_config(recursion_limit=RECURSION_LIMIT, configurable=scopes)


def _enter(graph: StateGraph[Any, RunOptions], alone: Sequence[Worker], files: NamedFiles | None) -> None:
    """Begin with the coordinator; where somebody can work `alone`, only unless the run is given to them."""
    if not alone:
        graph.add_edge(START, "coordinator")
        return

    def entrance(state: State, runtime: Runtime[Any]) -> str:
        return "solo" if RunOptions.of(runtime, state).agent in alone else "coordinator"

    graph.add_node("solo", SoloNode(files))
    graph.add_conditional_edges(START, entrance, ["solo", "coordinator"])


def members_of(team: Team) -> list[Worker]:
    """Return who is on a compiled team, in their order."""
    nodes = (node.metadata or {} for node in team.builder.nodes.values())
    marks = (about.get(AGENT_MARK) for about in nodes if not about.get(_ON_CALL))
    return [mark for mark in marks if mark and mark not in DIRECTORS]

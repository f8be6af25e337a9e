from maniple.graph.builder import RECURSION_LIMIT, Team, TeamRules, TeamServices, build_graph, members_of
from maniple.graph.plan import Plan, PlannedStep, PlanProgress
from maniple.graph.state import RunOptions, State

__all__ = [
    "RECURSION_LIMIT",
    "Plan",
    "PlanProgress",
    "PlannedStep",
    "RunOptions",
    "State",
    "Team",
    "TeamRules",
    "TeamServices",
    "build_graph",
    "members_of",
]

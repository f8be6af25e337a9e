from maniple.graph.builder import Team, TeamRules, build_graph
from maniple.graph.plan import Plan, PlannedStep, Progress
from maniple.graph.state import RunOptions, State

__all__ = ["Plan", "PlannedStep", "Progress", "RunOptions", "State", "Team", "TeamRules", "build_graph"]

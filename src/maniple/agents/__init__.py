from maniple.agents.limits import StepLimits
from maniple.agents.react import ReactAgent, build_react_agent
from maniple.agents.roles import DEFAULT_LLMS, ROLES, Role, briefs
from maniple.agents.task import Agent, Result, StepFailed, Task, response_from, shortened

__all__ = [
    "DEFAULT_LLMS",
    "ROLES",
    "Agent",
    "ReactAgent",
    "Result",
    "Role",
    "StepFailed",
    "StepLimits",
    "Task",
    "briefs",
    "build_react_agent",
    "response_from",
    "shortened",
]

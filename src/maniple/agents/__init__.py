from maniple.agents.middleware.limits import StepLimits
from maniple.agents.react import ReactAgent, build_react_agent
from maniple.agents.roles import ROLES, Role, Roles, author_of, briefs, in_order, llm_of, roles_of, written_by
from maniple.agents.task import Agent, Result, StepFailed, Task, response_from, shortened

__all__ = [
    "ROLES",
    "Agent",
    "ReactAgent",
    "Result",
    "Role",
    "Roles",
    "StepFailed",
    "StepLimits",
    "Task",
    "author_of",
    "briefs",
    "build_react_agent",
    "in_order",
    "llm_of",
    "response_from",
    "roles_of",
    "shortened",
    "written_by",
]

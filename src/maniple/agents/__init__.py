from maniple.agents.middleware.limits import StepLimits
from maniple.agents.react import ReactAgent, build_react_agent
from maniple.agents.roles import (
    ROLES,
    Role,
    Roles,
    build_roles,
    choose_llm,
    find_author,
    format_briefs,
    mark_author,
    sort_workers,
)
from maniple.agents.task import Agent, StepFailed, StepResult, Task, truncate_middle

__all__ = [
    "ROLES",
    "Agent",
    "ReactAgent",
    "Role",
    "Roles",
    "StepFailed",
    "StepLimits",
    "StepResult",
    "Task",
    "build_react_agent",
    "build_roles",
    "choose_llm",
    "find_author",
    "format_briefs",
    "mark_author",
    "sort_workers",
    "truncate_middle",
]

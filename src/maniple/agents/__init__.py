from maniple.agents.middleware.limits import StepLimits
from maniple.agents.react import ReactAgent, build_react_agent
from maniple.agents.roles import (
    ROLES,
    Role,
    Roles,
    as_ai_message,
    build_roles,
    choose_llm,
    find_author,
    find_current_roles,
    format_briefs,
    is_handover,
    mark_author,
    sort_workers,
    without_search,
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
    "as_ai_message",
    "build_react_agent",
    "build_roles",
    "choose_llm",
    "find_author",
    "find_current_roles",
    "format_briefs",
    "is_handover",
    "mark_author",
    "sort_workers",
    "truncate_middle",
    "without_search",
]

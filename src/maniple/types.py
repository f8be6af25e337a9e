"""Names shared by every layer."""

from collections.abc import Mapping
from typing import Any, Literal, TypeGuard, get_args

JudgeMode = Literal["auto", "on", "off"]
"""When a model judges the claims of reports: if it was measured to do so well, always, never."""
Effort = Literal["low", "medium", "high"]
"""How much a model reasons before it answers, as its endpoint understands the word."""
EFFORTS: tuple[Effort, ...] = get_args(Effort)
ReportStyle = Literal["auto", "brief", "standard", "long", "comparison", "table"]
"""The style of a report; `auto`: as the request asks."""
LLMType = Literal["basic", "reasoning", "vision"]
LLM_TYPES: tuple[LLMType, ...] = get_args(LLMType)

Worker = str
"""The name of a role: a built-in one of `WORKERS`, or a configured one."""
WORKERS: tuple[Worker, ...] = ("researcher", "coder", "browser", "file_manager", "reporter")

GENERAL: Worker = "manus"
"""The built-in role that works alone with all tools; it is not on the team unless it is configured."""

AgentName = str
"""The name of a worker or of a directing agent."""
DIRECTORS: tuple[AgentName, ...] = ("coordinator", "planner", "supervisor")
AGENTS: tuple[AgentName, ...] = (*DIRECTORS, *WORKERS)

AGENT_MARK = "maniple_agent"
"""The metadata key that identifies maniple's nodes in events and its workers in messages."""
RUN_MARK = "maniple_run"
"""The metadata key of the run's id, in checkpoints and for the tools of the run."""
PRIVATE_CHANNEL = "maniple"
"""The channel of the graph's state that holds everything private; beside it are messages and options."""
SUMMARY_SOURCE = "summarization"
"""The value of `lc_source` (LangChain's key) for model calls that summarise a conversation."""
REPAIR_SOURCE = "report_repair"
"""The value of `lc_source` for the model call that repairs passages of a report."""
SECTION_SOURCE = "report_section"
"""The same key of the calls that write the sections of a long report, whose text comes with the report."""
DESCRIPTION_SOURCE = "picture_description"
"""The same key of the call that describes a picture to a member whose model does not see."""
JUDGE_SOURCE = "claim_judge"
"""The same key of the calls that judge the claims of a report."""
UNSPOKEN = frozenset({SUMMARY_SOURCE, REPAIR_SOURCE, SECTION_SOURCE, DESCRIPTION_SOURCE, JUDGE_SOURCE})
"""Sources whose answers are not part of an agent's output."""
DISPENSABLE = frozenset({REPAIR_SOURCE, DESCRIPTION_SOURCE, JUDGE_SOURCE})
"""Sources of calls without which a run goes on at once, so that they do not wait for a model."""
TOOL_OUTPUT = "maniple_tool_output"
"""LangChain custom event: output that a tool prints while it runs."""
ANSWER_DRAFT = "maniple_answer_draft"
"""LangChain custom event: what is certain of the answer that the coordinator or the planner is writing.

`{message_id, text}`, with all of the text; of a plan also `plan`, each time it has more steps.
"""
PLAN_EVENT = "maniple_plan"
"""LangChain custom event: the current plan of concurrent steps (`plan`).

If an attempt of a step begins or ends, `step` is its id, else 0; `begins` is true at the beginning.
"""
BROWSER_STEP = "maniple_browser_step"
"""LangChain custom event:

A step of a browser call, with the fields of `BrowserStepChanged` except the call's id.
"""
BROWSER_STATE = "maniple_browser_state"
"""LangChain custom event: the state of the browser, `{url, title, tabs, screenshot}`."""
GAP_REVIEW = "maniple_gap_review"
"""LangChain custom event: what the lead found open before the report, with the fields of `GapsReviewed`."""
LEAD_DECISION = "maniple_lead_decision"
"""LangChain custom event: what the lead decided about a failed step, with the fields of `LeadDecided`."""
LEAD_REPLY = "maniple_lead_reply"
"""LangChain custom event: a reply to what the user said about a plan, as `UserMessageAnswered`."""
CLAIMS_CHECKED = "maniple_claims"
"""LangChain custom event: the verdicts on the claims of a report, with the fields of `ClaimsChecked`."""
STEP_INTERRUPT = "maniple_step_interrupt"
"""LangChain custom event: a step asks the user while others go on.

`{interrupt_id, step_id, agent_name, value}`; `value` is that of LangGraph's interrupt.
"""
STEP_RESUMED = "maniple_step_resumed"
"""LangChain custom event: such a question was answered, with the fields of `StepResumed`."""
MODEL_UNREACHABLE = "maniple_model_unreachable"
"""LangChain custom event: a model's endpoint does not answer and is asked again.

`{attempt, seconds, left_seconds}`, as in `ModelUnreachable`.
"""
EFFORT_NOT_USED = "maniple_effort_not_used"
"""LangChain custom event: a model does not take the effort of its run, with the fields of `EffortNotUsed`."""

DecisionKind = Literal["retry", "reassign", "continue_without", "replan", "finish"]
"""What the lead can decide about a failed step."""

Depth = Literal["quick", "standard", "deep"]
"""How far a question is researched: in one step; as planned; or in rounds until nothing is open."""
DEPTHS: tuple[Depth, ...] = get_args(Depth)

ProfileName = Literal["standard", "compact"]
"""How the team works with a model: `compact` is for models of a few billion parameters at most."""

StepStatus = Literal["not_started", "in_progress", "blocked", "completed", "failed", "skipped"]
"""Of a step of the plan. A blocked one has failed and waits for what it lacks, to be tried again."""
EngineRole = Literal["all", "api", "worker"]
"""Which side of a queue of runs a process is: it accepts requests, it drives runs, or both."""
RunStatus = Literal["completed", "failed", "cancelled", "interrupted", "budget_exhausted"]
RunState = Literal["queued", "running", "interrupted", "completed", "failed", "cancelled", "budget_exhausted"]
"""A run as it is stored; the first three are not its end."""
UnknownResultPolicy = Literal["ask", "rerun", "fail"]
"""What is done about a tool call that began before the program was stopped and has no result."""
OutageKind = Literal["model", "store"]
"""What a run waits for that is away, and with which it goes on by itself."""


STEP_FAILED = "STEP FAILED:"
"""Begins a member's answer that says why its step could not be done (`agents.step_outcome` parses it)."""
STEP_PARTIAL = "PARTIAL:"
"""Begins the line of a member's answer that says what is missing in it."""
STEP_NEEDS = "NEEDS:"
"""Begins the line of a member's answer that says what another member could provide."""


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value of unknown type, such as JSON data, is a mapping.

    With `isinstance` alone, type checkers know nothing of its keys and values. The keys are not checked.
    """
    return isinstance(value, Mapping)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value of unknown type is a `dict`; like `is_mapping`."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a value of unknown type is a `list`; like `is_mapping`."""
    return isinstance(value, list)

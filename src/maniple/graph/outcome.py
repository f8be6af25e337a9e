"""How an invocation of the team ended, for the graph around it: in the last message's `response_metadata`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypedDict, cast

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command

from maniple.agents.task import find_gaps
from maniple.graph.plan import PlanProgress
from maniple.graph.state import FAILED_MARK, State, merge_private, private_of
from maniple.graph.written_plan import REPORTER
from maniple.store.records import RunUsage
from maniple.types import PRIVATE_CHANNEL, RunStatus


class TeamOutcome(TypedDict):
    """The end of an invocation, as plain data."""

    status: RunStatus
    """`completed`, also with gaps; `failed`, if no model wrote an answer; `budget_exhausted`."""
    gaps: list[dict[str, str]]
    """The steps whose results the answer lacks: `step` (its title) and `reason`."""
    error_code: str | None
    """The code of the error that left the run without an answer."""
    usage: dict[str, Any]
    """What the run has used: calls, tokens, seconds and cost."""


def close_invocation(
    state: State, command: Command[Any], usage: RunUsage, *, exhausted: bool
) -> Command[Any]:
    """Return the command that ends the team's graph with the outcome in the last message.

    Without an answer, a message says so and why.
    """
    update = dict(cast("Mapping[str, Any]", command.update or {}))
    private = merge_private(private_of(state), update.get(PRIVATE_CHANNEL, {}))
    plan = private.get("plan") or {}
    failed = _undelivered(plan)
    status: RunStatus = "failed" if failed else "budget_exhausted" if exhausted else "completed"
    outcome = TeamOutcome(
        status=status,
        gaps=[{"step": step, "reason": reason} for step, reason in find_gaps(plan)],
        error_code=failed.get("error_code") if failed else None,
        usage=asdict(usage),
    )
    messages: list[BaseMessage] = [*update.get("messages", ())]
    if failed and not failed.get("by_code"):
        messages.append(_failure_message(failed))
    last = messages.pop() if messages else state["messages"][-1]
    metadata = {**last.response_metadata, **outcome}
    update["messages"] = [*messages, last.model_copy(update={"response_metadata": metadata})]
    return replace(command, update=update)


def can_be_resumed(values: Mapping[str, Any]) -> PlanProgress | None:
    """Return the plan of a finished invocation that lacks something; None if there is nothing to do again."""
    plan = private_of(values).get("plan")
    if not plan or not (find_gaps(plan) or _undelivered(plan)):
        return None
    return PlanProgress.from_state(plan)


def _undelivered(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the last step if an error left it without the answer of a model; {} if not."""
    steps: Sequence[Mapping[str, Any]] = plan.get("steps") or ({},)
    last = steps[-1]
    return last if last.get("status") == "failed" and last.get("error_code") else {}


def _failure_message(step: Mapping[str, Any]) -> BaseMessage:
    text = f"No answer could be written: {step.get('reason') or step.get('result')}"
    name = step.get("agent_name") or REPORTER
    return AIMessage(text, name=name, additional_kwargs={FAILED_MARK: True})

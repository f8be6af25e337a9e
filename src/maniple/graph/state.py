"""What flows through the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import MessagesState
from langgraph.runtime import Runtime

from maniple.agents import find_author
from maniple.agents.task import ThreadHistory
from maniple.graph.plan import PlanProgress
from maniple.types import WORKERS, Worker

_SUMMARY_IS = "What was said before, in short (a record, not instructions):\n"


class State(MessagesState, total=False):
    """The shared conversation and the plan everyone works from.

    The upper-case name and the four below it are LangManus's (seed 002). `plan` is a
    `PlanProgress` as plain data, `request` the user's request together with the answers to the coordinator's
    questions about it.
    """

    TEAM_MEMBERS: list[str]
    next: str
    full_plan: str
    deep_thinking_mode: bool
    search_before_planning: bool
    locale: str
    plan: dict[str, Any] | None
    feedback: str
    request: str
    files: list[str]
    """What the user put into the workspace, as prompts name it."""
    summary: dict[str, str] | None
    """What was said up to the message `upto`, in short (`text`); the messages themselves stay."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the caller chooses for one run. No `team_members` means everyone."""

    team_members: tuple[Worker, ...] = ()
    deep_thinking_mode: bool = False
    search_before_planning: bool = False
    auto_accepted_plan: bool = True
    locale: str = ""
    may_ask: bool = True
    """Whether somebody is there to answer questions."""
    agent: Worker = ""
    """Who answers alone, without coordinator, plan and report: one whose role says that it may."""

    @classmethod
    def of(cls, runtime: Runtime[Any], state: Mapping[str, Any]) -> "RunOptions":
        """Read the options of this run.

        Embedded in a foreign graph the context is not ours: then LangManus's state fields count,
        and what they leave out has its default.
        """
        if isinstance(runtime.context, cls):
            return runtime.context
        members = state.get("TEAM_MEMBERS") or ()
        return cls(
            team_members=tuple(members),
            deep_thinking_mode=bool(state.get("deep_thinking_mode")),
            search_before_planning=bool(state.get("search_before_planning")),
            locale=state.get("locale") or "",
        )

    def at_work(self, available: Sequence[Worker]) -> list[Worker]:
        """Return who may be given a step: whoever answers alone, else all who are enabled."""
        return [self.agent] if self.agent else self.enabled(available)

    def enabled(self, available: Sequence[Worker]) -> list[Worker]:
        """Return who may work: the chosen ones that this team has, and always the reporter.

        Names that are nobody's, such as those of a parent graph's own team, choose nothing.
        """
        chosen = [name for name in self.team_members if name in available or name in WORKERS] or available
        return [name for name in available if name in chosen or name == "reporter"]


def is_users(message: BaseMessage) -> bool:
    """Return whether the user wrote the message; what agents tell each other may be a human's by its type."""
    return isinstance(message, HumanMessage) and find_author(message) is None


def request_of(state: State) -> str:
    """Return what the user asks for: the newest message, made whole by earlier answers if there are any."""
    if request := state.get("request"):
        return request
    for message in reversed(state["messages"]):
        if is_users(message):
            return message.text
    return state["messages"][-1].text if state["messages"] else ""


def conversation_of(state: State) -> list[BaseMessage]:
    """Return what user and team said to each other, without plans and intermediate results.

    What is older than the state's summary is in it.
    """
    said: list[BaseMessage] = []
    summary = state.get("summary") or {}
    for message in state["messages"]:
        author = find_author(message)
        if message.name in ("coordinator", "reporter") or (author and isinstance(message, AIMessage)):
            said.append(AIMessage(message.text, id=message.id))
        elif author is None and message.type != "system":
            said.append(message)
        if summary and message.id == summary["upto"]:
            said = [HumanMessage(_SUMMARY_IS + summary["text"])]
    return said


def reports_of(state: State) -> list[str]:
    """Return the reports and answers of the whole thread that are no small talk, oldest first."""
    return [one.text for one in state["messages"] if _is_report(one)]


def history_of(state: State) -> ThreadHistory:
    """Return what happened on the thread before the present request."""
    messages = state["messages"]
    asked = [at for at, message in enumerate(messages) if is_users(message)]
    earlier = messages[: asked[-1]] if asked else []
    requests = [message.text for message in earlier if is_users(message)]
    reports = [message for message in earlier if _is_report(message)]
    answers = reports or [message for message in earlier if isinstance(message, AIMessage)]
    return ThreadHistory(requests, answers[-1].text if answers else "")


def _is_report(message: BaseMessage) -> bool:
    """Say whether a message is a run's answer: the reporter's, or of a member that answered alone."""
    if message.name == "reporter":
        return True
    return isinstance(message, AIMessage) and message.name not in (None, "coordinator", "planner")


def caller_of(state: State) -> str:
    """Return what the caller asks of the answer: the text of the system messages."""
    return "\n\n".join(message.text for message in state["messages"] if message.type == "system")


def progress_of(state: State) -> PlanProgress | None:
    """Return the plan of this run, if there is one."""
    data = state.get("plan")
    return PlanProgress.from_state(data) if data else None

"""The graph's state: what a parent shares, the conversation and its options, and what is private."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, Unpack, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import MessagesState
from langgraph.runtime import Runtime

from maniple.agents import find_author
from maniple.agents.task import ThreadHistory
from maniple.graph.plan import PlanProgress
from maniple.tools.items import MirroredText, report_path
from maniple.types import PRIVATE_CHANNEL, WORKERS, Worker

FAILED_MARK = "maniple_failed"
"""In the `additional_kwargs` of a member's message: its step failed."""
_SUMMARY_IS = "What was said before, in short (a record, not instructions):\n"


class PrivateState(TypedDict, total=False):
    """What the nodes know beside the conversation: plain data, in one channel that no parent sees.

    Once a node has run, it has a `run_id`.
    """

    thread_id: str
    """Names files, variables and pages of the conversation (`maniple.tools.run_context.thread_key`)."""
    run_id: str
    """The invocation to which records of tool calls, sources and usage belong."""
    usage: dict[str, Any]
    """What the run has used so far (`RunUsage`), where no engine counts it."""
    next: str
    """The node that was chosen last; before planning, the member that the request was sorted for."""
    full_plan: str
    """The planner's answer as JSON text."""
    plan: dict[str, Any] | None
    """A `PlanProgress` as plain data."""
    wave: int
    """The number of the newest wave of concurrent steps."""
    step: int
    """In the state of one invocation of a wave: the id of its step."""
    sent: list[int]
    """In the state of one invocation of a wave: the ids of all steps of the wave."""
    ended: dict[str, dict[str, Any]] | None
    """The outcomes of a wave by step id, until the supervisor has put them into the plan."""
    feedback: str
    """What the user wants to be different in the plan."""
    request: str
    """The user's request together with the answers to the coordinator's questions about it."""
    locale: str
    """The language of the request, such as `de-DE`."""
    files: list[str]
    """What the user put into the workspace, as prompts name it."""
    summary: dict[str, str] | None
    """What was said up to the message `upto`, in short (`text`); the messages themselves stay."""


def merge_private(state: PrivateState, update: PrivateState) -> PrivateState:
    """Return the private state after one node's update, which holds only the keys that it changes."""
    merged = cast("PrivateState", {**state, **update})
    if ended := update.get("ended"):
        merged["ended"] = {**(state.get("ended") or {}), **ended}
    return merged


class TeamInput(MessagesState, total=False):
    """What a caller gives: the conversation and LangManus's options (seed 002)."""

    TEAM_MEMBERS: list[str]
    deep_thinking_mode: bool
    search_before_planning: bool
    locale: str


class State(TeamInput, total=False):
    """All channels of the graph. Read private ones by `private_of`, write them by `make_update`."""

    maniple: Annotated[PrivateState, merge_private]
    # Version 1 had these channels; its checkpoints still do. Nothing writes them but `None`.
    next: str | None
    full_plan: str | None
    plan: dict[str, Any] | None
    feedback: str | None
    request: str | None
    files: list[str] | None
    summary: dict[str, str] | None


_VERSION_1 = ("next", "full_plan", "plan", "feedback", "request", "files", "summary")


def private_of(values: Mapping[str, Any]) -> PrivateState:
    """Return the private part of a state; `values` may also be those of a checkpoint of version 1."""
    if private := values.get(PRIVATE_CHANNEL):
        return cast("PrivateState", private)
    if not any(values.get(key) is not None for key in _VERSION_1):
        return {}
    former = {key: values[key] for key in (*_VERSION_1, "locale") if values.get(key) is not None}
    return cast("PrivateState", former)


def with_private(state: State, **private: Unpack[PrivateState]) -> State:
    """Return the state with private keys changed, as after an update."""
    return cast("State", {**state, PRIVATE_CHANNEL: merge_private(private_of(state), private)})


def upgrade_state(state: State) -> tuple[State, Mapping[str, Any]]:
    """Return the state with its private part in place, and the update that stores it so."""
    private = private_of(state)
    if not private or state.get(PRIVATE_CHANNEL):
        return state, {}
    emptied = {key: None for key in _VERSION_1 if key in state}
    return cast("State", {**state, PRIVATE_CHANNEL: private}), {**emptied, PRIVATE_CHANNEL: private}


def make_update(*messages: BaseMessage, **private: Unpack[PrivateState]) -> dict[str, Any]:
    """Return a node's update: messages that are added, and the private keys that change."""
    update: dict[str, Any] = {"messages": list(messages)} if messages else {}
    return {**update, PRIVATE_CHANNEL: private} if private else update


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
        members, locale = state.get("TEAM_MEMBERS"), state.get("locale")
        # A parent may use these names for something else.
        named: Sequence[Any] = members if isinstance(members, list | tuple) else ()
        return cls(
            team_members=tuple(name for name in named if isinstance(name, str)),
            deep_thinking_mode=bool(state.get("deep_thinking_mode")),
            search_before_planning=bool(state.get("search_before_planning")),
            locale=locale if isinstance(locale, str) else "",
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
    if request := private_of(state).get("request"):
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
    summary = private_of(state).get("summary") or {}
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


def mirrored_reports(state: State) -> list[MirroredText]:
    """Return the thread's reports with the paths of their mirrors."""
    return [MirroredText(report_path(number), text) for number, text in enumerate(reports_of(state), start=1)]


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
        return not message.additional_kwargs.get(FAILED_MARK)
    return isinstance(message, AIMessage) and message.name not in (None, "coordinator", "planner")


def caller_of(state: State) -> str:
    """Return what the caller asks of the answer: the text of the system messages."""
    return "\n\n".join(message.text for message in state["messages"] if message.type == "system")


def progress_of(values: Mapping[str, Any]) -> PlanProgress | None:
    """Return the plan of this run, if there is one, with the outcomes of a wave that has ended."""
    private = private_of(values)
    data = private.get("plan")
    if not data:
        return None
    progress = PlanProgress.from_state(data)
    for step_id, outcome in (private.get("ended") or {}).items():
        if outcome:
            progress = progress.with_step(int(step_id), **outcome)
    return progress

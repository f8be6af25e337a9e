"""The graph's state: the conversation and options that a parent graph shares, and the private part."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypedDict, Unpack, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import MessagesState  # pyright: ignore[reportMissingTypeStubs] - it has types
from langgraph.runtime import Runtime

from maniple.agents import find_author, is_handover
from maniple.agents.report_score import remove_score
from maniple.agents.turn_record import TurnRecord
from maniple.errors import ConfigError
from maniple.graph.plan import PlanProgress
from maniple.graph.step_records import StepRecord, apply_records
from maniple.scope.inputs import PlanChange
from maniple.tools.items import MirroredText, report_path
from maniple.types import (
    DEPTHS,
    DIRECTORS,
    EFFORTS,
    PRIVATE_CHANNEL,
    WORKERS,
    Depth,
    Effort,
    ReportStyle,
    Worker,
)

FAILED_MARK = "maniple_failed"
"""A key in the `additional_kwargs` of a member's message: its step failed."""
ANSWER_MARK = "maniple_answer"
"""A key in the `additional_kwargs` of a user's message that answers the coordinator's question."""
STEERING_MARK = "maniple_steering"
"""A key in the `additional_kwargs` of a user's message that was sent to a running run and started none."""
_SUMMARY_IS = "What was said before, in short (a record, not instructions):\n"


class PrivateState(TypedDict, total=False):
    """The nodes' own data in addition to the conversation: plain data in one channel that parents do not see.

    After the first node it has a `run_id`.
    """

    thread_id: str
    """The key of the conversation's files, variables and pages (`maniple.scope.run_scope.thread_key`)."""
    run_id: str
    """The invocation to which records of tool calls, sources and usage belong."""
    usage: dict[str, Any]
    """The usage of the run so far (`RunUsage`), if no engine counts it."""
    next: str
    """The node that was chosen last; before planning, the member that the coordinator chose."""
    full_plan: str
    """The planner's answer as JSON text."""
    plan: dict[str, Any] | None
    """A `PlanProgress` as plain data."""
    wave: int
    """The number of the newest wave of concurrent steps."""
    step: int
    """For one invocation of a wave: the id of its step."""
    sent: list[int]
    """For one invocation of a wave: the ids of all steps of the wave."""
    ended: dict[str, list[StepRecord]] | None
    """The records of a wave by the step of each invocation, until they are applied to the plan."""
    feedback: str
    """The user's request to change the plan."""
    asked: str
    """The user's question about the plan that is reviewed, until the lead has answered it."""
    unfinished: str
    """What the plan of the previous request lacks, for the planner's prompt; "" for nothing."""
    request: str
    """The user's request together with the answers to the coordinator's questions about it."""
    schedule: dict[str, str] | None
    """The schedule that the coordinator proposes (`ScheduleWish`); None without one."""
    schedule_note: str
    """What became of the proposal, for the coordinator's next prompt; "" without one."""
    handed_step: Any
    """The only step of the plan as the coordinator wrote it (`handoff.find_step`); None without one."""
    locale: str
    """The language of the request, such as `de-DE`."""
    files: list[str]
    """Descriptions of the user's files in the workspace, for prompts."""
    turns: list[TurnRecord]
    """Earlier turns in which the user said or decided something, or that were not answered; oldest first."""
    folded: list[str]
    """The ids of the newest runs that were considered for `turns`, oldest first."""
    lost_pictures: list[str]
    """Sentences about pictures of the request's messages that are no files of the workspace, for prompts."""
    number_source: str | None
    """What the numbers of a small model's calculation have to come from; None if they are free."""
    unseen_pictures: list[str]
    """The names of the request's pictures that no model of a team of small ones has seen."""
    web_pictures: dict[str, str]
    """The paths of the pictures at addresses in the user's messages, by address; "" if it was not fetched."""
    summary: dict[str, str] | None
    """A summary (`text`) of the messages up to the one with the id `upto`; the messages themselves stay."""


def merge_private(state: PrivateState, update: PrivateState) -> PrivateState:
    """Return the private state after one node's update, which contains only the changed keys."""
    merged = cast("PrivateState", {**state, **update})
    if ended := update.get("ended"):
        merged["ended"] = {**(state.get("ended") or {}), **ended}
    return merged


class TeamInput(MessagesState, total=False):
    """The input of a caller: the conversation and LangManus's options (seed 002)."""

    TEAM_MEMBERS: list[str]
    deep_thinking_mode: bool
    search_before_planning: bool
    locale: str


class State(TeamInput, total=False):
    """All channels of the graph. Read private ones by `private_of`, write them by `make_update`."""

    maniple: Annotated[PrivateState, merge_private]


def private_of(values: Mapping[str, Any]) -> PrivateState:
    """Return the private part of a state or of the values of a checkpoint."""
    return cast("PrivateState", values.get(PRIVATE_CHANNEL) or {})


def with_private(state: State, **private: Unpack[PrivateState]) -> State:
    """Return the state with changed private keys."""
    return cast("State", {**state, PRIVATE_CHANNEL: merge_private(private_of(state), private)})


def make_update(*messages: BaseMessage, **private: Unpack[PrivateState]) -> dict[str, Any]:
    """Return a node's update: the messages to add and the private keys to change."""
    update: dict[str, Any] = {"messages": list(messages)} if messages else {}
    return {**update, PRIVATE_CHANNEL: private} if private else update


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The caller's options for one run. Empty `team_members` means all members."""

    team_members: tuple[Worker, ...] = ()
    deep_thinking_mode: bool = False
    search_before_planning: bool = False
    auto_accepted_plan: bool = True
    locale: str = ""
    may_ask: bool = True
    """Whether a user can answer questions."""
    agent: Worker = ""
    """The agent that answers alone, without coordinator, plan and report. Its role must allow it."""
    start_page: str = ""
    """The page that is opened first if the browser answers alone."""
    depth: Depth | Literal[""] = ""
    """How far the question is researched; "" for the depth of the settings."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` for an unknown depth or effort: an embedding program may pass any text."""
        for name, value, known in (("depth", self.depth, DEPTHS), ("effort", self.effort, EFFORTS)):
            if value and value not in known:
                raise ConfigError(f"{name} {value!r} does not exist; use {', '.join(known)}.")

    report_style: ReportStyle | Literal[""] = ""
    """The style of the report; "" for the one of the settings."""
    effort: Effort | Literal[""] = ""
    """How much the models are to reason; "" leaves it to them."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> "RunOptions":
        """Return the options that a mapping names; other keys are not ours and are ignored."""
        return cls(**{name: value for name, value in values.items() if name in _OPTION_NAMES})

    @classmethod
    def of(cls, runtime: Runtime[Any], state: Mapping[str, Any]) -> "RunOptions":
        """Read the options of this run.

        In a foreign graph the context belongs to the parent. Then the options come from LangManus's state
        fields, and missing ones have their defaults.
        """
        if isinstance(runtime.context, cls):
            return runtime.context
        members, locale = state.get("TEAM_MEMBERS"), state.get("locale")
        # A parent may use these names for something else.
        named = cast("Sequence[Any]", members) if isinstance(members, list | tuple) else ()
        return cls(
            team_members=tuple(name for name in named if isinstance(name, str)),
            deep_thinking_mode=bool(state.get("deep_thinking_mode")),
            search_before_planning=bool(state.get("search_before_planning")),
            locale=locale if isinstance(locale, str) else "",
        )

    @property
    def takes_handed_step(self) -> bool:
        """Whether a plan may be the coordinator's: nobody reviews it, and nobody asked for more thought."""
        return self.auto_accepted_plan and not self.deep_thinking_mode and not self.search_before_planning

    def at_work(self, available: Sequence[Worker]) -> list[Worker]:
        """Return the workers that can get steps: the agent that answers alone, else all enabled members."""
        return [self.agent] if self.agent else self.enabled(available)

    def enabled(self, available: Sequence[Worker]) -> list[Worker]:
        """Return the enabled members: the chosen ones that this team has, and always the reporter.

        Unknown names, such as those of a parent graph's own team, are ignored.
        """
        chosen = [name for name in self.team_members if name in available or name in WORKERS] or available
        return [name for name in available if name in chosen or name == "reporter"]


_OPTION_NAMES = frozenset(one.name for one in fields(RunOptions))


def is_users(message: BaseMessage) -> bool:
    """Return whether the message is a request of the user.

    Messages between agents may have the human type. Messages that the user sent to a running run are no
    requests.
    """
    return _is_by_user(message) and not message.additional_kwargs.get(STEERING_MARK)


def texts_of_user(state: State) -> list[str]:
    """Return the texts of all messages of the user on the thread."""
    return [one.text for one in state["messages"] if _is_by_user(one)]


def _is_by_user(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and find_author(message) is None


def request_of(state: State) -> str:
    """Return the user's request: the newest message, with the answers to clarifying questions about it."""
    if request := private_of(state).get("request"):
        return request
    for message in reversed(state["messages"]):
        if is_users(message):
            return message.text
    return state["messages"][-1].text if state["messages"] else ""


def conversation_of(state: State) -> list[BaseMessage]:
    """Return the messages between user and team, without plans and intermediate results.

    The state's summary replaces the messages that it covers.
    """
    conversation: list[BaseMessage] = []
    summary = private_of(state).get("summary") or {}
    for message in state["messages"]:
        author = find_author(message)
        if message.name in ("coordinator", "reporter") or (author and not is_handover(message)):
            conversation.append(AIMessage(report_text(message), id=message.id))
        elif author is None and message.type != "system":
            conversation.append(message)
        if summary and message.id == summary["upto"]:
            conversation = [HumanMessage(_SUMMARY_IS + summary["text"])]
    return conversation


def reports_of(state: State) -> list[str]:
    """Return all reports and answers of the thread except small talk, oldest first."""
    return [report_text(one) for one in state["messages"] if is_report(one)]


def report_text(message: BaseMessage) -> str:
    """Return the text of a message of the team without the score of a report, which is no text of it."""
    return remove_score(message.text)


def mirrored_reports(state: State) -> list[MirroredText]:
    """Return the thread's reports with the paths of their mirrors."""
    return [MirroredText(report_path(number), text) for number, text in enumerate(reports_of(state), start=1)]


def answer_of(state: State) -> str:
    """Return the team's last report or answer before the present request; "" for none."""
    messages = state["messages"]
    asked = [at for at, message in enumerate(messages) if is_users(message)]
    earlier = messages[: asked[-1]] if asked else []
    reports = [message for message in earlier if is_report(message)]
    # An API caller sends back answers without a name; what the coordinator says by itself is no report.
    replies = (one for one in earlier if isinstance(one, AIMessage) and not is_handover(one))
    answers = reports or [one for one in replies if one.name not in DIRECTORS]
    return report_text(answers[-1]) if answers else ""


def is_report(message: BaseMessage) -> bool:
    """Return whether a message is the answer of a run: a report, or that of a member working alone."""
    if message.name == "reporter":
        return not message.additional_kwargs.get(FAILED_MARK)
    is_answer = isinstance(message, AIMessage) and not is_handover(message)
    return is_answer and message.name not in (None, *DIRECTORS)


def is_reply(message: BaseMessage) -> bool:
    """Return whether a message is what the coordinator said, or an answer that an API caller sent back."""
    if is_handover(message) or not message.text:
        return False
    return message.name == "coordinator" or (isinstance(message, AIMessage) and message.name is None)


def caller_of(state: State) -> str:
    """Return the instructions of the API's caller: the text of the system messages."""
    return "\n\n".join(message.text for message in state["messages"] if message.type == "system")


def progress_of(
    values: Mapping[str, Any], changes: Iterable[PlanChange] = (), members: Sequence[str] = ()
) -> PlanProgress | None:
    """Return the plan of this run, or None, with the records of a finished wave and `changes` applied.

    They are applied together, in the order in which they happened: a record of a step that was changed before
    would be without effect on the plan before the change.
    """
    if not (data := private_of(values).get("plan")):
        return None
    return apply_records(PlanProgress.from_state(data), records_of(values), changes, members)


def records_of(values: Mapping[str, Any]) -> list[StepRecord]:
    """Return the records of a finished wave that were not applied to the plan yet."""
    ended = private_of(values).get("ended") or {}
    return [record for records in ended.values() for record in records]

"""The records of a store. Times are Unix seconds; a field documented as "JSON" is text."""

import hashlib
import json
import secrets
from dataclasses import dataclass, field

from maniple.types import OutageKind, RunState

KEY_PREFIX = "mk_"
_NAME_TURN, _NAME_STEP = (
    ("start_of_agent", "end_of_agent"),
    ("lead_decision", "step_interrupt", "step_resumed"),
)
"""Event types whose data have an `agent_id` or a `step_id` of their own."""


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run has used so far; `cost` is in the currency of the configured prices."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0


def make_thread_id(owner: str, name: str) -> str:
    """Return the id of the thread that `owner` calls `name`. Two owners may use the same name."""
    return f"{owner}:{name}" if owner else name


def make_thread_name(thread_id: str, owner: str) -> str:
    return thread_id.removeprefix(f"{owner}:") if owner else thread_id


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation, or a branch of one.

    `owner` is the id of the API key that created it, "" when no keys are configured. A branch begins with the
    runs of the thread `parent_id` before `branched_run`, in whose place its first run stands; a copy with
    those up to `copied_run` instead. `root_id` is the conversation that it belongs to. `note` says what of
    its workspace is not as it was at that run. All of these are "" for a conversation. `metadata` (JSON) is
    what a client of another protocol wrote on it.
    """

    thread_id: str
    owner: str
    title: str
    created_at: float
    updated_at: float
    parent_id: str = ""
    branched_run: str = ""
    root_id: str = ""
    note: str = ""
    copied_run: str = ""
    metadata: str = "{}"

    @property
    def name(self) -> str:
        """The name that its owner chose, or else its id."""
        return make_thread_name(self.thread_id, self.owner)

    @property
    def conversation_id(self) -> str:
        """The id of the conversation: its own one, or that of the conversation that it is a branch of."""
        return self.root_id or self.thread_id


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One turn on a thread.

    `kind` is the program that drives it ("server" or "chat"), `process` the id of the driving process,
    `request` (JSON) what a recovery needs to start it again, `base_checkpoint` the thread's newest checkpoint
    before the run. `stalls` counts the recoveries since its last progress.
    """

    run_id: str
    thread_id: str
    owner: str
    kind: str
    process: str
    status: RunState
    request: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    usage: RunUsage = field(default_factory=RunUsage)
    error_code: str | None = None
    error: str | None = None
    recoveries: int = 0
    base_checkpoint: str | None = None
    stalls: int = 0
    retries: int = 0
    waiting_for: OutageKind | None = None
    """What is away while the run is `queued`: it has begun, and goes on by itself."""
    waiting_since: float | None = None
    waiting_until: float | None = None

    @property
    def thread_name(self) -> str:
        """The name that the owner chose for the thread, or else its id."""
        return make_thread_name(self.thread_id, self.owner)

    @property
    def is_unfinished(self) -> bool:
        """Whether the run is queued or running. A run that waits for a person is not."""
        return self.status in ("queued", "running")


@dataclass(frozen=True, slots=True)
class RunText:
    """The question of a run that has ended, and its answer ("" for none), as they are searched."""

    run: RunRecord
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class InputRecord:
    """Something that was sent to a run. It is never rewritten; its reply is set once.

    `kind` names the format of `content` (JSON), `sender` is "user" or "lead". `reply` (JSON) is what became
    of it, None while it waits.
    """

    input_id: str
    kind: str
    sender: str
    content: str
    at: float
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as it is sent: its number in the run (from 1), its type, its data as JSON in one line.

    `at` is the time of the event, to the millisecond. `agent_id` names the turn of an agent that it belongs
    to, "" for an event of the run; `step_id` is the plan's step in that turn. `at` and `agent_id` are None
    for events that an earlier version stored.
    """

    number: int
    type: str
    data: str
    at: float | None = None
    agent_id: str | None = None
    step_id: int | None = None

    @property
    def turn_id(self) -> str:
        """The turn that it belongs to; "" for an event of the run, and where it is unknown."""
        return self.agent_id or ""

    @property
    def marked_data(self) -> str:
        """The data with `agent_id` and `step_id`, as far as there are any, as its last keys."""
        # The data of an event is never empty.
        marks = "" if self.step_id is None or self.type in _NAME_STEP else f', "step_id": {self.step_id}'
        if self.agent_id and self.type not in _NAME_TURN:
            marks = f', "agent_id": {json.dumps(self.agent_id, ensure_ascii=False)}{marks}'
        return f"{self.data[:-1]}{marks}}}" if marks else self.data


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """The intent and, once known, the result (both JSON) of a tool call.

    `attempts` counts how often it was tried. If there is more than one without a result, the effect of the
    tool is unknown, unless its work had not begun (`started_at` is None).
    """

    run_id: str
    tool_call_id: str
    tool_name: str
    arguments: str
    result: str | None
    begun_at: float
    ended_at: float | None = None
    attempts: int = 1
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a run created: `name` is one path component, `size` in bytes, `sha256` in hex."""

    artifact_id: str
    run_id: str
    thread_id: str
    owner: str
    name: str
    media_type: str
    size: int
    sha256: str
    created_at: float


@dataclass(frozen=True, slots=True)
class KeyLimits:
    """What an API key may do: concurrent runs, and amounts in any 24 hours (None is no limit); and more."""

    max_runs: int | None = None
    daily_model_calls: int | None = None
    daily_tool_calls: int | None = None
    daily_tokens: int | None = None
    daily_seconds: float | None = None
    daily_cost: float | None = None
    admin: bool = False
    """Whether the key may change what all keys share, such as the model that answers."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A stored API key: `digest` is the SHA-256 (hex) of its secret."""

    key_id: str
    name: str
    digest: str
    created_at: float
    revoked_at: float | None = None
    limits: KeyLimits = field(default_factory=KeyLimits)


def make_key_secret() -> str:
    """Return `mk_` and 32 random bytes in URL-safe base64."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def key_digest(secret: str) -> str:
    """Return the SHA-256 (hex) that is stored instead of a secret.

    A secret has 256 random bits, so a fast digest protects it as well as a slow one.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

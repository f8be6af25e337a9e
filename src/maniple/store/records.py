"""What is kept. Times are Unix seconds; what reads "JSON" is text."""

from dataclasses import dataclass, field

from maniple.types import RunState


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run has used so far; `cost` is in the currency of the configured prices."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0


def id_of_named(owner: str, name: str) -> str:
    """Return the id of the thread that an owner calls `name`: two may choose the same and not meet."""
    return f"{owner}:{name}" if owner else name


def _name_of(thread_id: str, owner: str) -> str:
    return thread_id.removeprefix(f"{owner}:") if owner else thread_id


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation. `owner` is the id of the API key that made it, "" when no keys are configured."""

    thread_id: str
    owner: str
    title: str
    created_at: float
    updated_at: float

    @property
    def name(self) -> str:
        """What its owner calls it: the name that the owner chose, or else its id."""
        return _name_of(self.thread_id, self.owner)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One turn on a thread.

    `kind` says who drives it ("server" or "chat"), `process` which process does, `request` (JSON) what to
    do again after a crash, `base_checkpoint` what the thread had come to before the run.
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
    usage: Usage = field(default_factory=Usage)
    error_code: str | None = None
    error: str | None = None
    recoveries: int = 0
    base_checkpoint: str | None = None

    @property
    def thread_name(self) -> str:
        """What the owner calls its thread."""
        return _name_of(self.thread_id, self.owner)

    @property
    def is_unfinished(self) -> bool:
        """Whether somebody is to work on it now; one that waits for a person is not."""
        return self.status in ("queued", "running")


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as it goes to the wire: its number in the run (from 1), its name, its JSON in one line.

    `at` is when it happened, to the millisecond; None where an earlier version stored it.
    """

    number: int
    type: str
    data: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """The intent and, once known, the result (both JSON) of a tool call.

    `attempts` counts how often it was begun: more than one and no result means that nobody knows whether
    the tool did its work.
    """

    run_id: str
    tool_call_id: str
    tool_name: str
    arguments: str
    result: str | None
    begun_at: float
    ended_at: float | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a run made: `name` is one path component, `size` in bytes, `sha256` in hex."""

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
    """What a key may use: runs at once, and amounts in any 24 hours; None is without limit."""

    max_runs: int | None = None
    daily_model_calls: int | None = None
    daily_tool_calls: int | None = None
    daily_tokens: int | None = None
    daily_seconds: float | None = None
    daily_cost: float | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept: `digest` is the SHA-256 (hex) of its secret."""

    key_id: str
    name: str
    digest: str
    created_at: float
    revoked_at: float | None = None
    limits: KeyLimits = field(default_factory=KeyLimits)

"""Every error maniple raises on purpose.

ManipleError
├── ConfigError          a setting is missing or wrong; fatal at start-up, names file, line and key
├── UnconfiguredModel    a run asks for a model that the settings do not have; names those that they have
├── ModelError           a model endpoint failed; names endpoint, model and remedy
├── PlanError            the planner gave no usable plan, twice
├── EmbeddedModelError   the local model could not be fetched, joined or started
├── StoreError           the store could not be read or written; names the file and the remedy
│   ├── StoreFull        the disk is full
│   ├── StoreReadOnly    the file or its directory cannot be written
│   ├── StoreCorrupt     the file is damaged or not a database
│   ├── StoreBusy        another process holds the file
│   │   └── StoreInUse   it will not let go of it by itself
│   ├── StoreUnreachable the database server does not answer
│   └── RunTakenOver     another process drives the run now
├── Unavailable          a part of the team is not there on this machine; names the reason and the remedy
├── BudgetExhausted      a run has used up one of its limits; ends in a report, never in a failure
└── ToolFailure          the model can read this and try something else
    ├── SandboxError     the sandbox refused or could not run the code
    ├── FetchError       a page could not be fetched
    ├── SearchError      no search provider answered
    ├── BrowserError     the browser could not do what was asked
    ├── McpError         an MCP server is not there, did not answer, or refused
    └── FileError        a workspace file could not be read or written
        └── WorkspaceFull    there is no room for it
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

ModelErrorCode = Literal[
    "model_unreachable",
    "model_auth",
    "model_not_found",
    "model_rate_limited",
    "model_overloaded",
    "model_timeout",
    "model_stream_cut",
    "model_bad_request",
    "model_bad_response",
    "model_not_configured",
]


class ManipleError(Exception):
    """Base of the hierarchy; catch this at the edges.

    `code` is the machine-readable name in the `error` event. `retryable` is True if the same request may
    succeed later without any change.
    """

    code: str = "internal"
    retryable: bool = False
    agent_name: str = ""
    """The member in whose work it happened, where that is not the one that raises it."""
    has_answer: bool = False
    """Whether the run that it ends has an answer all the same: a report that code has put together."""


class ConfigError(ManipleError):
    """Settings are missing or contradictory."""

    code = "config"


class UnconfiguredModel(ManipleError):
    """A run asks for a model that is not configured."""

    code = "unknown_model"

    def __init__(self, model: str, known: Sequence[str]) -> None:
        there = ", ".join(known) or "none, so that `model` must be left out"
        super().__init__(f"There is no model {model!r} in the settings. Configured: {there}.")


class ModelError(ManipleError):
    """A model endpoint failed; the message names endpoint, model and what to do."""

    def __init__(self, message: str, *, code: ModelErrorCode, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.broke_off = False
        """The answer had begun, or its waiting: what the SDK does not ask for again by itself."""
        self.is_outage = False
        """Whether the endpoint takes no requests at present, so that any other request would fail as well."""
        self.had_answered = False
        """Whether the endpoint has answered earlier requests of this process."""
        self.refusal = ""
        """The status and the words of an endpoint that refused the request, as `HTTP 400: Too long`."""
        self.done_before = ""
        """What an agent had found until then."""
        self.continuation: dict[str, Any] = {}
        """What an agent had done until then, as plain data (`maniple.agents.middleware.continuation`)."""

    def with_what_was_done(self) -> str:
        """Return the words and what was found before."""
        return f"{self}\nUntil then:\n{self.done_before}" if self.done_before else str(self)

    def hide(self, secret: str) -> None:
        """Take `secret` out of the message."""
        if len(secret) >= 6:
            self.args = (str(self).replace(secret, "***"),)
            self.refusal = self.refusal.replace(secret, "***")


class PlanError(ManipleError):
    """The planner gave no usable plan, even when it was shown its mistake."""

    code = "plan_invalid"
    retryable = True


class EmbeddedModelError(ManipleError):
    """The embedded model could not be fetched, joined or started."""

    code = "embedded_model"


class Unavailable(ManipleError):
    """A part of the team is not there on this machine; what can do without it goes on and says so."""

    code = "capability_unavailable"

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy
        """The command or setting that repairs it."""

    def __str__(self) -> str:
        return f"{self.reason} To fix it: {self.remedy}"


class BudgetExhausted(ManipleError):
    """A run has used up one of its limits; the words name it and how much was used."""

    code = "budget_exhausted"

    def __init__(self, message: str, *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit
        """The field of `Budget` that is used up, such as `model_calls`."""
        self.done_before = ""
        """What an agent had found until then."""
        self.continuation: dict[str, Any] = {}
        """What an agent had done until then, as plain data (`maniple.agents.middleware.continuation`)."""

    def with_what_was_done(self) -> str:
        """Return the words and what was found before."""
        return f"{self}\nUntil then:\n{self.done_before}" if self.done_before else str(self)


class StoreError(ManipleError):
    """Something could not be stored or read; nothing of what it was about was stored."""

    code = "store"


class StoreFull(StoreError):
    """The disk is full."""

    code = "store_full"
    retryable = True


class StoreReadOnly(StoreError):
    """The file or its directory cannot be written."""

    code = "store_read_only"


class StoreCorrupt(StoreError):
    """The file is damaged, or is no database."""

    code = "store_corrupt"


class StoreBusy(StoreError):
    """Another process holds the file."""

    code = "store_busy"
    retryable = True


class StoreInUse(StoreBusy):
    """Another process holds the file, and a person has to end that first."""


class StoreUnreachable(StoreError):
    """The database server does not answer."""

    code = "store_unreachable"
    retryable = True


class RunTakenOver(StoreError):
    """Another process drives the run: this one counted as dead, and writes nothing for it any more."""

    code = "run_taken_over"


class ToolFailure(ManipleError):
    """A failure the model should read and react to."""

    code = "tool_failed"


class SandboxError(ToolFailure):
    """The sandbox refused the code or could not start."""


class FetchError(ToolFailure):
    """A page could not be fetched."""


class SearchError(ToolFailure):
    """No search provider answered."""


class BrowserError(ToolFailure):
    """The browser could not do what was asked."""


class McpError(ToolFailure):
    """An MCP server is not there, did not answer or refused; or one of its tools is not to be used."""

    code = "mcp"


class FileError(ToolFailure):
    """A workspace file could not be read or written."""

    code = "file_refused"


class WorkspaceFull(FileError):
    """The workspace, or the disk that it is on, has no room for it."""

    code = "workspace_full"


def describe_error(error: BaseException) -> str:
    """Return the message of an error for models and clients:

    One line of at most 500 characters for foreign errors.
    """
    lines = str(error).strip().splitlines()
    first = lines[0][:500] if lines else "no further words"
    if isinstance(error, ManipleError):
        return str(error)
    return f"{type(error).__name__}: {first}"


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, eight at most.

    What was handled when it was raised counts, because httpcore raises its own errors `from None`.
    """
    one: BaseException | None = error
    for _ in range(8):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__

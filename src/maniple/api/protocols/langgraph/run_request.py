"""The body of a run of the LangGraph API, and what of it the team can use."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, cast

from langchain_core.messages import BaseMessage, HumanMessage, convert_to_messages
from langgraph.graph import END  # pyright: ignore[reportMissingTypeStubs] - it has types
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from maniple.api.protocols.langgraph.assistants import UnsupportedRequest
from maniple.api.protocols.run_choices import InvalidChoice, RunChoices, name_unknown, read_choices
from maniple.api.requests import check_storable
from maniple.errors import ManipleError
from maniple.service.sent_files import SentFile, decode_content
from maniple.text import fix_surrogates

StreamMode = Literal["values", "updates", "messages-tuple", "messages", "custom", "events"]
Modes = Annotated[
    list[StreamMode],
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given),
    Field(min_length=1, max_length=10),
]
"""What a stream has; `messages` is another name of `messages-tuple`."""
_REFUSED = ("interrupt_before", "interrupt_after", "after_seconds", "feedback_keys")
"""Fields that promise what the service does not do."""
_WITHOUT_LOSS = (
    *_REFUSED,
    "stream_resumable",
    *(f"config.configurable.{one}" for one in ("thread_id", "checkpoint_id", "checkpoint_ns")),
)
"""What is not named as unused: the service refuses it unless it is empty, or does it anyway."""
MAX_METADATA_CHARACTERS = 10_000
_TEXT_TYPES = ("text", "input_text")
_FILE_TYPES = ("file", "audio", "video", "text-plain")


def _check_length(metadata: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(metadata)) > MAX_METADATA_CHARACTERS:
        raise ValueError(f"metadata may have {MAX_METADATA_CHARACTERS:,} characters as JSON")
    return metadata


ClientMetadata = Annotated[dict[str, Any], AfterValidator(check_storable), AfterValidator(_check_length)]
"""What a client writes on a run or a thread."""


class InvalidRun(ManipleError):
    """A request asks nothing, or something that the team cannot read."""

    code = "invalid_input"


class RunCommand(BaseModel):
    """How a run that waits goes on: `resume` is the answer, or a mapping of answers by interrupt ids.

    `goto` may be the end (`__end__`): the run is cancelled instead.
    """

    model_config = ConfigDict(extra="allow")

    resume: Any = None
    update: Any = None
    goto: Any = None

    @property
    def is_end(self) -> bool:
        """Whether the run goes to its end, and is neither answered nor changed."""
        return self.goto in (END, [END]) and not self.update and self.resume is None


class RunCheckpoint(BaseModel):
    """The state from which a run goes on."""

    model_config = ConfigDict(extra="allow")

    checkpoint_id: str | None = None


class LangGraphRun(BaseModel):
    """A run: a new message in `input`, the answers to interrupts in `command`, or neither to retry.

    `config.configurable` and `context` have the options of the run, such as `depth`.
    """

    model_config = ConfigDict(extra="allow", title="LangGraphRunCreate")

    assistant_id: str = Field(max_length=200)
    input: dict[str, Any] | None = None
    command: RunCommand | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: ClientMetadata | None = None
    stream_mode: Modes = ["values"]
    stream_subgraphs: bool = False
    multitask_strategy: Literal["reject", "interrupt", "rollback", "enqueue"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = None
    checkpoint: RunCheckpoint | None = None
    checkpoint_id: str | None = None
    webhook: str | None = Field(None, max_length=2_000)
    """The address of a webhook of the key, which is sent the end of the run as that of every run."""

    def refuse_unsupported(self) -> None:
        """Raise `UnsupportedRequest` for the first field that promises what the service does not do."""
        extra = self.model_extra or {}
        for name in _REFUSED:
            if extra.get(name):
                raise UnsupportedRequest(f"{name} is not supported here. Leave it out.")
        if self.on_completion == "delete":
            raise UnsupportedRequest(
                "on_completion: delete is not supported: threads stay. Delete the thread itself."
            )
        command = self.command
        if command is not None and (command.update or command.goto) and not command.is_end:
            raise UnsupportedRequest(
                "command.update is not supported, and command.goto leads to the end (`__end__`) only, "
                "without a resume: send command.resume."
            )

    @property
    def asked_checkpoint(self) -> str | None:
        """The id of the checkpoint from which the run is to go on; None for the newest."""
        inside = self.checkpoint.checkpoint_id if self.checkpoint else None
        return self.checkpoint_id or inside or self._configurable.get("checkpoint_id")

    @property
    def _configurable(self) -> Mapping[str, Any]:
        found: Any = (self.config or {}).get("configurable")
        return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}

    @property
    def _is_continuing(self) -> bool:
        """Whether it answers or retries a run, which stays what it is otherwise."""
        return self.command is not None or self.input is None

    @property
    def not_used(self) -> list[str]:
        """The names of what the request has that has no effect."""
        extra, config = self.model_extra or {}, self.config or {}
        names = [name for name, value in extra.items() if value is not None]
        names += [f"config.{name}" for name, value in config.items() if value and name != "configurable"]
        options = {"config.configurable": self._configurable, "context": self.context or {}}
        if self._is_continuing:
            parts = {"input": self.input, "metadata": self.metadata, **options}
            names += [name for name, value in parts.items() if value]
        else:
            names += [f"input.{name}" for name in self.input or {} if name != "messages"]
            names += [name for place, given in options.items() for name in name_unknown(place, given)]
        return fix_surrogates([name for name in names if name not in _WITHOUT_LOSS])

    def read_options(self) -> RunChoices:
        """Return the options of the run; raises `InvalidRun`."""
        given = {**self._configurable, **(self.context or {})}
        names = RunChoices.model_fields.keys() - {"thread_id"}
        try:
            return read_choices("context", {name: given[name] for name in names if name in given})
        except InvalidChoice as error:
            raise InvalidRun(f"{error.place}: {error}") from error


def read_messages(given: Mapping[str, Any]) -> tuple[list[BaseMessage], list[SentFile]]:
    """Return the messages of an input and the files in its newest one; raises `InvalidRun`."""
    sent: Any = given.get("messages")
    if isinstance(sent, (str, dict)):
        sent = [sent]
    if not isinstance(sent, list) or not sent:
        raise InvalidRun("input.messages must be a list of messages, the newest one last.")
    try:
        messages = convert_to_messages(cast("Sequence[Any]", fix_surrogates(sent)))
    except (ValueError, TypeError, NotImplementedError, KeyError) as error:
        raise InvalidRun(f"input.messages cannot be read: {str(error).splitlines()[0]}") from error
    files: list[SentFile] = []
    content = _read_content(messages[-1].content, files)
    newest = messages[-1].model_copy(update={"content": content})
    if not isinstance(newest, HumanMessage):
        raise InvalidRun("The last message must be the user's: the team answers that one.")
    if not (newest.text.strip() if isinstance(content, str) else content):
        raise InvalidRun("The last message is empty: give it text or a picture.")
    return [*messages[:-1], newest], files


def _read_content(content: Any, files: list[SentFile]) -> Any:
    if isinstance(content, str):
        return content
    parts = [part for part in (_read_part(one, files) for one in content) if part is not None]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _read_part(part: Any, files: list[SentFile]) -> dict[str, Any] | None:
    """Return a part of a message as models take it; a file is put into `files` instead."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = str(part.get("type"))
    if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind == "image_url":
        image: Any = part.get("image_url")
        url = cast("Mapping[str, Any]", image).get("url") if isinstance(image, Mapping) else image
        return {"type": "image_url", "image_url": {"url": str(url)}}
    data = part.get("base64") or part.get("data")
    media_type = str(part.get("mime_type") or part.get("mimeType") or "application/octet-stream")
    if kind == "image" and (data or part.get("url")):
        url = f"data:{media_type};base64,{data}" if data else part["url"]
        return {"type": "image_url", "image_url": {"url": str(url)}}
    if kind in _FILE_TYPES and isinstance(data, str):
        files.append(_read_file(part, data, media_type, len(files) + 1))
        return None
    raise InvalidRun(f"A part of the type {kind[:50]!r} cannot be read. Send its data itself, as base64.")


def _read_file(part: Mapping[str, Any], data: str, media_type: str, number: int) -> SentFile:
    ending = media_type.partition("/")[2].partition(";")[0] or "bin"
    metadata: Any = part.get("metadata") or part.get("extras")
    named: Mapping[str, Any] = cast("Mapping[str, Any]", metadata) if isinstance(metadata, Mapping) else {}
    name = named.get("filename") or named.get("name") or part.get("filename") or f"file-{number}.{ending}"
    try:
        return SentFile(str(name), decode_content(data))
    except ValueError as error:
        raise InvalidRun(f"The file {str(name)[:100]!r} is no base64.") from error

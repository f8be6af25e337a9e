"""What Chat Completions answers: models, the answer with its calls, and errors.

Source: https://platform.openai.com/docs/api-reference/chat/object
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

FinishReason = Literal["stop", "length", "tool_calls"]
_OWNER = "maniple"


class ModelView(BaseModel):
    """A model: the team, or an agent that answers alone."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = _OWNER


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ModelView]


class CompletionUsage(BaseModel):
    """The tokens of the model calls for this answer: a run that went on with a result had others before."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CalledFunction(BaseModel):
    """A function of the client; the arguments are JSON as text."""

    name: str
    arguments: str


class FunctionCallView(BaseModel):
    """A call that the client is asked to run."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class AnswerMessage(BaseModel):
    """The answer; `reasoning_content` has a line for each step of the work."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    reasoning_content: str = ""
    refusal: str | None = None
    tool_calls: list[FunctionCallView] | None = None


class CompletionChoice(BaseModel):
    """The one answer."""

    index: int = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: FinishReason


class ChatCompletionView(BaseModel):
    """An answer of the team. `not_used` names the parameters of the request that had no effect."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage
    thread_id: str
    not_used: list[str]


class OpenAIError(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorView(BaseModel):
    """An error as OpenAI's clients read it."""

    model_config = ConfigDict(title="OpenAIErrorBody")

    error: OpenAIError


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": OpenAIErrorView} for status in (400, 401, 404, 409, 413, 422, 429, 500, 503)
}

"""The tools `ask_human`, which waits for the user, and `terminate`, which ends a step."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import get_runtime
from pydantic import AliasChoices, BaseModel, Field

from maniple.scope.context import SCOPE_KEY, configurable
from maniple.tools.questions import ask_user
from maniple.tools.registry import tool_factory
from maniple.types import STEP_FAILED, STEP_NEEDS, STEP_PARTIAL, is_mapping

ASK_USER = "ask_human"
"""The name of the tool that asks the user."""
_ENOUGH = (
    "The user has been asked often enough in this run and was not asked this. Decide for yourself, "
    "and say in your answer what you assumed."
)
_NOBODY = (
    "Nobody is there to answer questions in this run. Decide for yourself, and say in your answer what you "
    "assumed."
)
_NO_ANSWER = "(The user gave no answer; decide for yourself.)"


class _Question(BaseModel):
    question: str = Field(description="One short question, in the user's language.")
    options: list[str] | None = Field(
        default=None, description="A few answers to choose from; another one may be given."
    )


class _Inquiry(BaseModel):
    inquire: str = Field(description="The question, in the user's language.")


@tool_factory(ASK_USER)
def ask_tools(max_questions: int) -> list[BaseTool]:
    """Return the tool `ask_human` in a list; [] if `max_questions`, the limit of a run, is 0.

    A call asks with `{kind: "question", question, options}`; its result is the text of the answer.
    `call_once` counts the calls. Beyond the limit, and if the run's options have `may_ask=False`, the result
    instructs the model to decide for itself.
    """

    async def ask_human(question: str, options: list[str] | None = None) -> str:
        return await _ask(question, options or [])

    return _tools(ask_human, _Question, max_questions)


@tool_factory(ASK_USER)
def inquiry_tools(max_questions: int) -> list[BaseTool]:
    """Return `ask_human` for the agent in the browser, with the parameter `inquire`."""

    async def ask_human(inquire: str) -> str:
        return await _ask(inquire, [])

    return _tools(ask_human, _Inquiry, max_questions)


async def _ask(question: str, options: list[str]) -> str:
    if not _may_ask():
        return _NOBODY
    answer = await ask_user({"kind": "question", "question": question, "options": options})
    return answer_text(answer.value) or _NO_ANSWER


def _tools(
    function: Callable[..., Awaitable[str]], schema: type[BaseModel], max_questions: int
) -> list[BaseTool]:
    if max_questions == 0:
        return []
    tool = StructuredTool.from_function(
        coroutine=function,
        name=ASK_USER,
        description="Ask the user and wait for the answer. Only for what you can neither find out nor "
        f"sensibly assume: at most {max_questions} questions a run.",
        args_schema=schema,
        metadata={
            "said_by": "user",
            "idempotent": True,
            "timeout_seconds": None,
            "max_calls_per_run": max_questions,
            "beyond": _ENOUGH,
        },
    )
    return [tool]


def _may_ask() -> bool:
    """Return whether a question can be answered, by the options and the scope of the run if it has these."""
    if not getattr(configurable().get(SCOPE_KEY), "can_pause", True):
        return False
    try:
        context = get_runtime().context
    except RuntimeError:  # LangGraph raises this outside of a run
        return True
    return bool(getattr(context, "may_ask", True))


def answer_text(answer: Any) -> str:
    """Return the text of an answer, which is a text or a mapping with one; "" if there is none."""
    if is_mapping(answer):
        answer = next((answer[key] for key in ("answer", "message", "text") if answer.get(key)), "")
    return str(answer).strip()


class _End(BaseModel):
    status: Literal["success", "partial", "failure"] = Field(
        default="success",
        description="partial: something is missing in the result. failure: the task could not be done, and "
        "the result says why.",
    )
    result: str = Field(
        default="",
        description="The whole answer, in Markdown.",
        validation_alias=AliasChoices("result", "answer"),
    )
    missing: str | None = Field(default=None, description="For partial: what is missing.")
    needs: str | None = Field(
        default=None, description="For partial and failure: what another member could provide, if anything."
    )


@tool_factory("terminate")
def terminate_tool() -> BaseTool:
    """Return the tool `terminate`; its result ends the step (`is_terminal`).

    The result is in the form that `agents.step_outcome` parses. Models may name the result `answer`. Without
    a result, the model's last text is the result, as in OpenManus, whose tool has only a status.
    """

    async def terminate(
        status: str, result: str, missing: str | None = None, needs: str | None = None
    ) -> str:
        text = f"{STEP_FAILED} {result}".strip() if status == "failure" else result
        lines = [f"{STEP_PARTIAL} {missing or ''}".strip()] if status == "partial" or missing else []
        lines += [f"{STEP_NEEDS} {needs}"] if needs else []
        return "\n\n".join(filter(None, (text, *lines)))

    return StructuredTool.from_function(
        coroutine=terminate,
        name="terminate",
        description="End the work with the answer. Nothing can be done after it.",
        args_schema=_End,
        metadata={"is_terminal": True, "idempotent": True, "said_by": "agent"},
    )

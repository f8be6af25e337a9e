"""`ask_human`: an agent's question to the user, for which the run pauses."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import get_runtime
from langgraph.types import interrupt
from pydantic import AliasChoices, BaseModel, Field

_ENOUGH = (
    "The user has been asked often enough in this run and was not asked this. Decide for yourself, "
    "and say in your answer what you assumed."
)
_NOBODY = (
    "Nobody is there to answer questions in this run. Decide for yourself, and say in your answer what you "
    "assumed."
)
_NOTHING_SAID = "(The user gave no answer; decide for yourself.)"


class _Question(BaseModel):
    question: str = Field(description="One short question, in the user's language.")
    options: list[str] | None = Field(
        default=None, description="Answers to choose from, if there are few; another one may still be given."
    )


class _Inquiry(BaseModel):
    inquire: str = Field(description="The question, in the user's language.")


def ask_tools(max_questions: int) -> list[BaseTool]:
    """The tool, alone in a list; none when `max_questions`, the bound for a run, is 0.

    A call interrupts the graph with `{kind: "question", question, options}`; the answer's text is the
    result. Whoever keeps the run's ledger counts: a call over the bound is told to decide for itself, and so
    is every call where the options of the run say that nobody `may_ask`.
    """

    async def ask_human(question: str, options: list[str] | None = None) -> str:
        return _answered(question, options or [])

    return _tools(ask_human, _Question, max_questions)


def inquiry_tools(max_questions: int) -> list[BaseTool]:
    """The same for the agent in the browser, whose parameter is `inquire`."""

    async def ask_human(inquire: str) -> str:
        return _answered(inquire, [])

    return _tools(ask_human, _Inquiry, max_questions)


def _answered(question: str, options: list[str]) -> str:
    if not _may_ask():
        return _NOBODY
    answer = interrupt({"kind": "question", "question": question, "options": options})
    return answer_text(answer) or _NOTHING_SAID


def _tools(
    function: Callable[..., Awaitable[str]], schema: type[BaseModel], max_questions: int
) -> list[BaseTool]:
    if max_questions == 0:
        return []
    tool = StructuredTool.from_function(
        coroutine=function,
        name="ask_human",
        description="Ask the user, and wait for the answer. Only for what you cannot find out and cannot "
        f"sensibly assume: at most {max_questions} questions are answered in a run.",
        args_schema=schema,
        metadata={
            "said_by": "user",
            "idempotent": True,
            "max_calls_per_run": max_questions,
            "beyond": _ENOUGH,
        },
    )
    return [tool]


def _may_ask() -> bool:
    """Read the run's options; in a foreign graph, which has none of ours, asking is allowed."""
    try:
        context = get_runtime().context
    except RuntimeError:  # LangGraph's word for "not inside a run"
        return True
    return bool(getattr(context, "may_ask", True))


def answer_text(answer: Any) -> str:
    """Return what the user said: an answer is a text, or a mapping that holds one; "" for nothing."""
    if isinstance(answer, Mapping):
        answer = next((answer[key] for key in ("answer", "message", "text") if answer.get(key)), "")
    return str(answer).strip()


class _End(BaseModel):
    status: Literal["success", "failure"] = Field(
        default="success", description="failure: the task could not be done, and the result says why."
    )
    result: str = Field(
        default="",
        description="The whole answer, in Markdown.",
        validation_alias=AliasChoices("result", "answer"),
    )


def terminate_tool() -> BaseTool:
    """The tool `terminate(status, result)`; its result ends the step (`is_terminal`).

    A model may call the result `answer`. Without one it is what the model said last, as in OpenManus, whose
    tool takes a status alone.
    """

    async def terminate(status: str, result: str) -> str:
        return result if status == "success" else f"STEP FAILED: {result}".strip()

    return StructuredTool.from_function(
        coroutine=terminate,
        name="terminate",
        description="End the work with the answer. Nothing can be done after it.",
        args_schema=_End,
        metadata={"is_terminal": True, "idempotent": True, "said_by": "agent"},
    )

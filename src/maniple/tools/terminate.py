"""`terminate`: an agent that works alone says that it is done, and what it has to say."""

from collections.abc import Awaitable, Callable
from typing import Literal

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field


class _End(BaseModel):
    answer: str = Field(description="The whole answer to the user, in Markdown.")
    status: Literal["success", "failure"] = Field(
        default="success", description="failure: the task could not be done, and the answer says why."
    )


class _Result(BaseModel):
    status: Literal["success", "failure"] = Field(
        description="failure: the task could not be done, and the result says why."
    )
    result: str = Field(description="The whole answer, in Markdown.")


def terminate_tool() -> BaseTool:
    """The tool; its result, the answer, ends the step (`is_terminal`)."""

    async def terminate(answer: str, status: str = "success") -> str:
        return _ending(status, answer)

    return _tool(terminate, _End)


def result_tool() -> BaseTool:
    """The same for the agent in the browser: `terminate(status, result)`."""

    async def terminate(status: str, result: str) -> str:
        return _ending(status, result)

    return _tool(terminate, _Result)


def _ending(status: str, answer: str) -> str:
    return answer if status == "success" else f"STEP FAILED: {answer}"


def _tool(function: Callable[..., Awaitable[str]], schema: type[BaseModel]) -> BaseTool:
    return StructuredTool.from_function(
        coroutine=function,
        name="terminate",
        description="End the work with the answer. Nothing can be done after it.",
        args_schema=schema,
        metadata={"is_terminal": True, "idempotent": True, "said_by": "agent"},
    )

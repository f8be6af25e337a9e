"""`terminate`: an agent that works alone says that it is done, and what it has to say."""

from typing import Literal

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field


class _End(BaseModel):
    answer: str = Field(description="The whole answer to the user, in Markdown.")
    status: Literal["success", "failure"] = Field(
        default="success", description="failure: the task could not be done, and the answer says why."
    )


def terminate_tool() -> BaseTool:
    """The tool; its result, the answer, ends the step (`is_terminal`)."""

    async def terminate(answer: str, status: str = "success") -> str:
        return answer if status == "success" else f"STEP FAILED: {answer}"

    return StructuredTool.from_function(
        coroutine=terminate,
        name="terminate",
        description="End the work with the answer. Nothing can be done after it.",
        args_schema=_End,
        metadata={"is_terminal": True, "idempotent": True, "said_by": "agent"},
    )

"""`terminate`: an agent that works alone says that it is done, and what it has to say."""

from typing import Literal

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import AliasChoices, BaseModel, Field


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

"""The functions of the client as LangChain tools: a call asks the client, and its answer is the result."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from maniple.errors import ToolFailure
from maniple.json_schemas import SchemaNotApplicable, find_misfit
from maniple.scope.client_tools import ADDED_KEY, RESULT_KEY, ClientCall, ClientTool, make_call_id
from maniple.scope.run_scope import run_scope, task_key
from maniple.text import fix_surrogates
from maniple.tools.questions import EDIT_KEY, POSITION_KEY, ask_user
from maniple.types import is_mapping

_NO_RESULT = "[the client returned nothing]"


class ClientFunction(BaseTool):
    """Asks the client to run a function, with the question of `ClientCall.to_payload`."""

    position: int = 0
    """The place of the call among those of the model's answer."""

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Otherwise, a client could override LangChain's own arguments by their names.
        arguments = dict(tool_input) if isinstance(tool_input, dict) else {}
        return (), {"arguments": arguments, "tool_call_id": tool_call_id or ""}

    def _run(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("The client is only asked asynchronously. Use ainvoke.")

    async def _arun(self, arguments: Mapping[str, Any], tool_call_id: str) -> str | ToolMessage:
        if wrong := await asyncio.to_thread(_find_misfit, self.args_schema, arguments):
            raise ToolFailure(f"the arguments do not fit, and the client was not asked. {wrong}")
        call_id = make_call_id(run_scope().run_id, f"{task_key()}:{tool_call_id}")
        asked = ClientCall(call_id, self.name, arguments).to_payload()
        place = {POSITION_KEY: self.position} if self.position else {}
        answer = (await ask_user({**asked, **place}, call_id)).value
        result, added = _split_answer(answer)
        if not added:
            return result_text(result)
        said = {EDIT_KEY: f"The user adds to this result: {added}"}
        content = result_text(result)
        return ToolMessage(content, tool_call_id=tool_call_id, name=self.name, additional_kwargs=said)


def offered_client_tools() -> Sequence[ClientTool]:
    """Return the functions that members of the current run may call: none if nobody can be asked."""
    scope = run_scope()
    return scope.client_tools if scope.can_pause else ()


def make_client_function(tool: ClientTool, position: int = 0) -> ClientFunction:
    """Return the tool that asks the client for a call at a `position` among those of an answer."""
    return ClientFunction(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=tool.parameters,
        position=position,
        # What an answer was given for is known by the question, so that a call may be made again.
        metadata={"mode": "parallel", "idempotent": True, "timeout_seconds": None},
    )


def result_text(answer: Any) -> str:
    """Return the client's answer as the text of a result: JSON stays JSON."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return fix_surrogates(text) if text.strip() and answer is not None else _NO_RESULT


def _split_answer(answer: Any) -> tuple[Any, str]:
    """Return the result in an answer, and what the user says beside it; "" if that is nothing."""
    if is_mapping(answer) and {*answer} == {RESULT_KEY, ADDED_KEY}:
        return answer[RESULT_KEY], str(answer[ADDED_KEY])
    return answer, ""


def _find_misfit(schema: Any, arguments: Mapping[str, Any]) -> str:
    try:
        return find_misfit(schema, dict(arguments))
    except SchemaNotApplicable:
        return ""  # the client checks its arguments itself

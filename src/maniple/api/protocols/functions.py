"""Functions of the client in OpenAI's protocols: those that a request offers, and the results of calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from maniple.api.protocols.openai_errors import UnsupportedParameter
from maniple.events import RunInterrupted
from maniple.runs import RunRequest
from maniple.scope.client_tools import ClientCall, ClientTool, InvalidClientTool
from maniple.service import Service
from maniple.service.client_tools import accept_client_tools
from maniple.store import RunRecord
from maniple.text import fix_surrogates, shorten

_TEXT_PARTS = frozenset(("text", "input_text", "output_text"))
_NOT_FORCED = "Members decide which functions they call: tool_choice is auto or none."
_NOT_ONE_BY_ONE = "Members work at the same time, and so can their calls be: parallel_tool_calls is true."


@dataclass(frozen=True, slots=True)
class OfferedFunctions:
    """The functions that a request offers, each with the name of its place in the request."""

    described: Sequence[tuple[str, Mapping[str, Any]]] = ()
    is_used: bool = True
    """False: none may be called, by the request itself."""

    def accept(self, service: Service) -> tuple[ClientTool, ...]:
        """Return the functions for a run; raises `UnsupportedParameter`."""
        if not self.is_used:
            return ()
        try:
            return accept_client_tools([one for _, one in self.described], service.runtime)
        except InvalidClientTool as error:
            number, _, rest = error.place.partition(".")
            place = f"{self.described[int(number)][0]}.{rest}" if number else "tools"
            raise UnsupportedParameter(place, str(error), code="invalid_value") from error


@dataclass(slots=True)
class FunctionResults:
    """The results of calls with which a request ends, by the ids of the calls."""

    by_call: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, place: str, call_id: Any, content: Any) -> None:
        """Add the result of a call; raises `UnsupportedParameter`."""
        if not isinstance(call_id, str) or not call_id:
            raise UnsupportedParameter(place, "A result needs the id of its call.", code="invalid_value")
        call_id, result = fix_surrogates(call_id), fix_surrogates(_read_result(place, content))
        if self.by_call.setdefault(call_id, result) != result:
            raise UnsupportedParameter(
                place, f"There are two results of {shorten(call_id, 100)}. Send one.", code="invalid_value"
            )


def offer_functions(
    described: Sequence[tuple[str, Mapping[str, Any]]], choice: Any, parallel: Any
) -> OfferedFunctions:
    """Return the functions of a request; raises `UnsupportedParameter` for a call that is to be forced."""
    if choice not in (None, "auto", "none"):
        raise UnsupportedParameter("tool_choice", _NOT_FORCED)
    if described and choice != "none" and parallel is False:
        raise UnsupportedParameter("parallel_tool_calls", _NOT_ONE_BY_ONE)
    return OfferedFunctions(described, choice != "none")


def name_lost_functions(run: RunRecord, tools: Sequence[ClientTool]) -> list[str]:
    """Return the name of the parameter with functions where a run that goes on has others."""
    return ["tools"] if tools and tuple(RunRequest.of(run).client_tools) != tuple(tools) else []


def name_lost_results(call_ids: Sequence[str]) -> list[str]:
    """Return the names of results of calls that had been answered otherwise before."""
    return [f"result of {one}" for one in call_ids]


def find_calls(pauses: Sequence[RunInterrupted]) -> list[ClientCall]:
    """Return the calls among what a run waits for."""
    return [call for one in pauses if (call := ClientCall.of(one.payload))]


def write_arguments(call: ClientCall) -> str:
    """Return the arguments of a call as JSON."""
    return json.dumps(call.arguments, ensure_ascii=False)


def _read_result(place: str, content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts: list[str] = []
    for part in cast("list[Any]", content) if isinstance(content, list) else [content]:
        given = cast("dict[str, Any]", part if isinstance(part, dict) else {})
        if given.get("type") not in _TEXT_PARTS:
            raise UnsupportedParameter(place, "The result of a call is text; put a picture into a message.")
        texts.append(str(given.get("text") or ""))
    return "\n".join(texts)

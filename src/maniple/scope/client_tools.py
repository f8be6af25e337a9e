"""Functions of the client: what a run's team may ask its client to run, and the calls that wait for it."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maniple.json_schemas import find_schema_mistake
from maniple.text import fix_surrogates
from maniple.types import is_mapping

MAX_CLIENT_TOOLS = 128
MAX_SCHEMA_CHARACTERS = 30_000
MAX_TOOLS_CHARACTERS = 200_000
"""Of all functions of a run together, as JSON."""
MAX_DESCRIPTION_CHARACTERS = 10_000
CALL_KEY = "client_call"
"""The key in the payload of a question of the call that the client is asked to run (`ClientCall`)."""
RESULT_KEY, ADDED_KEY = "result", "added_by_user"
"""The keys of an answer that has, beside the result of a call, a text of the user."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL_ID = re.compile(r"call_(?P<run_id>[A-Za-z0-9-]{1,100})_[0-9a-f]{16}")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


class InvalidClientTool(ValueError):
    """A function cannot be offered; `place` says where, such as `0.parameters`; "" for all together."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A function that the client runs itself; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call that the client is asked to run. Its id is the same in each execution, and names the run."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]

    def to_payload(self) -> dict[str, Any]:
        """Return the question to the client, which a person can read and answer, too."""
        given = json.dumps(self.arguments, ensure_ascii=False)
        asked = f"The client is asked to run `{self.name}` with {given}. Answer with its result."
        call = {"id": self.call_id, "name": self.name, "arguments": dict(self.arguments)}
        return {"kind": "question", "question": asked, "options": [], CALL_KEY: call}

    @classmethod
    def of(cls, payload: Mapping[str, Any]) -> "ClientCall | None":
        """Return the call in the payload of a question; None for any other question."""
        call = payload.get(CALL_KEY)
        if not is_mapping(call) or not is_mapping(call.get("arguments")):
            return None
        return cls(str(call.get("id")), str(call.get("name")), call["arguments"])


def make_call_id(run_id: str, key: str) -> str:
    """Return the id of the call that has a `key` of its own in a run."""
    return f"call_{run_id}_{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def run_of_call(call_id: str) -> str | None:
    """Return the id of the run that a call's id names; None if it is no id of a call."""
    found = _CALL_ID.fullmatch(call_id)
    return found["run_id"] if found else None


def read_client_tools(given: Sequence[Mapping[str, Any]]) -> tuple[ClientTool, ...]:
    """Return the functions that mappings with name, description and parameters describe.

    A description or a schema may be missing or null. One that is repeated word for word counts once. Lone
    surrogates are repaired, as no store takes them. Raises `InvalidClientTool`.
    """
    if len(given) > MAX_CLIENT_TOOLS:
        raise InvalidClientTool("", f"There are {len(given)} functions; at most {MAX_CLIENT_TOOLS} can be.")
    named = dict[str, ClientTool]()
    for place, one in enumerate(given):
        tool = _read_tool(str(place), one)
        if named.setdefault(tool.name, tool) != tool:
            raise InvalidClientTool(f"{place}.name", f"There are two functions with the name {tool.name!r}.")
    tools = tuple(named.values())
    size = sum(len(one.description) + len(json.dumps(one.parameters)) for one in tools)
    if size > MAX_TOOLS_CHARACTERS:
        raise InvalidClientTool(
            "", f"The functions have {size:,} characters; at most {MAX_TOOLS_CHARACTERS:,} can be offered."
        )
    return tools


def check_free_names(tools: Sequence[ClientTool], is_taken: Callable[[str], bool]) -> None:
    """Raise `InvalidClientTool` if a name is that of a tool of the team."""
    for place, tool in enumerate(tools):
        if is_taken(tool.name):
            message = f"The team has a tool named {tool.name!r} itself. Give the function another name."
            raise InvalidClientTool(f"{place}.name", message)


def _read_tool(place: str, given: Mapping[str, Any]) -> ClientTool:
    name, description = given.get("name"), given.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidClientTool(
            f"{place}.name", "A function needs a name of 1 to 64 letters, digits, underscores and hyphens."
        )
    description = "" if description is None else description
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_CHARACTERS:
        raise InvalidClientTool(
            f"{place}.description", f"It must be text of at most {MAX_DESCRIPTION_CHARACTERS:,} characters."
        )
    schema = _read_schema(f"{place}.parameters", given.get("parameters"))
    return ClientTool(name, fix_surrogates(description), schema)


def _read_schema(place: str, schema: Any) -> dict[str, Any]:
    if schema is None or schema == {}:
        return {**_NO_PARAMETERS}
    if not is_mapping(schema) or schema.get("type", "object") != "object":
        raise InvalidClientTool(place, 'It must be a JSON Schema of the type "object".')
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (ValueError, RecursionError) as error:
        raise InvalidClientTool(
            place, "It is nested too deeply, or has a number that is none (NaN)."
        ) from error
    if size > MAX_SCHEMA_CHARACTERS:
        raise InvalidClientTool(place, f"It has more than {MAX_SCHEMA_CHARACTERS:,} characters.")
    if mistake := find_schema_mistake(schema):
        raise InvalidClientTool(place, f"It is no valid JSON Schema: {mistake}.")
    return fix_surrogates({"type": "object", **schema})

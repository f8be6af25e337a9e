"""The OpenAPI document: what FastAPI cannot derive from the routes.

These are the members of the team, the public names of components, and the events of streams.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, get_args

from pydantic.json_schema import models_json_schema

from maniple.api.requests import NO_AGENT, values_inside
from maniple.events import EVENT_TYPES, Event
from maniple.types import WORKERS, RunState

_COMPONENTS = "#/components/schemas/"
_COMPONENT_NAMES = {
    "ErrorResponse": "Problem",
    "FileMissing": "Missing",
    "MessageView": "SaidView",
    "PartReadiness": "Ready",
    "PlanEditRequest": "PlanChangeIn",
    "PlanStatus": "PlanView",
    "PlanStepStatus": "PlanStep",
    "ResumeRequest": "Answer",
    "RunCreate": "RunBody",
    "RunDetail": "RunView",
    "RunReference": "RunStub",
    "ThreadCreate": "NewThread",
    "ThreadUpdate": "ThreadChange",
}
"""The public names of renamed classes: clients that were generated from `/openapi.json` use them."""
_FRAME_NAME = "StreamFrame"
_PAGE_NAME = "EventPage"


def describe_stream(description: str, frame: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a stream of server-sent events, each a `frame`, as a response.

    `itemSchema` is OpenAPI 3.2's, which FastAPI writes into 3.1, too. A generator for 3.1 ignores it, and its
    client has the bytes of the stream.
    """
    item = frame or {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
    content = {"text/event-stream": {"itemSchema": dict(item)}}
    return {"description": description, "content": content}


def describe_location(status: int, what: str) -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route whose answer of this status says in `Location` where `what` is."""
    header = {
        "description": f"The address of {what}",
        "schema": {"type": "string", "format": "uri-reference"},
    }
    return {status: {"headers": {"Location": header}}}


RUN_STREAM: dict[int | str, dict[str, Any]] = {
    200: describe_stream(
        "Server-sent events, as `docs/wire.md` lists them", {"$ref": _COMPONENTS + _FRAME_NAME}
    )
}
"""The `responses` of a route that streams the events of a run."""
EVENT_PAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The events, oldest first",
        "content": {"application/json": {"schema": {"$ref": _COMPONENTS + _PAGE_NAME}}},
    }
}
"""The `responses` of a route that returns stored events."""


def adapt_document(document: dict[str, Any], workers: Sequence[str], alone: Sequence[str]) -> None:
    """Have a document name the team's members and all events, and components as it always has.

    `workers` are all members; `alone` are those that a run can have as its only agent.
    """
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name, schema in _describe_events(EVENT_TYPES).items():
        schemas.setdefault(name, schema)
    _rename(document, {WORKERS: list(workers), NO_AGENT: list(alone)})
    public = {_COMPONENT_NAMES.get(name, name): schema for name, schema in schemas.items()}
    document["components"]["schemas"] = dict(sorted(public.items()))


def _describe_events(event_types: Mapping[str, type[Event]]) -> dict[str, Any]:
    """Return the components of these events by wire names: their data, their frames, and the union of both.

    A field with a default is optional: events of earlier versions may lack it.
    """
    references, schema = models_json_schema(
        [(one, "validation") for one in event_types.values()], ref_template=_COMPONENTS + "{model}"
    )
    data = {name: references[one, "validation"]["$ref"] for name, one in event_types.items()}
    frames = {f"{one.__name__}Frame": _describe_frame(name, data[name]) for name, one in event_types.items()}
    stored = {
        f"Stored{one.__name__}": _describe_stored(name, data[name]) for name, one in event_types.items()
    }
    unions = {
        "EventData": {
            "description": "The data of an event.",
            "anyOf": [{"$ref": ref} for ref in data.values()],
        },
        _FRAME_NAME: {
            "description": "One event: its number in the view, its name, and its data as JSON.",
            **_one_of(frames, event_types),
        },
        "StoredEvent": {"description": "One event with its data.", **_one_of(stored, event_types)},
        _PAGE_NAME: {
            "type": "object",
            "description": "Stored events; `next_after` is the `after` of the next page, `status` the run's.",
            "properties": {
                "status": {"type": "string", "enum": [*get_args(RunState)]},
                "next_after": {"type": "integer"},
                "events": {"type": "array", "items": {"$ref": _COMPONENTS + "StoredEvent"}},
            },
            "required": ["status", "next_after", "events"],
        },
    }
    return {**schema["$defs"], **frames, **stored, **unions}


def _one_of(components: Iterable[str], event_types: Iterable[str]) -> dict[str, Any]:
    """Return the union of components, one for each of the wire names `event_types`, in their order."""
    references = [_COMPONENTS + name for name in components]
    mapping = dict(zip(event_types, references, strict=True))
    return {
        "oneOf": [{"$ref": one} for one in references],
        "discriminator": {"propertyName": "event", "mapping": mapping},
    }


def _describe_stored(name: str, data: str) -> dict[str, Any]:
    """Return the schema of a stored event with this name; `data` refers to that of its data."""
    return {
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "event": {"const": name, "type": "string"},
            "at": {
                "anyOf": [{"type": "number"}, {"type": "null"}],
                "description": "Unix seconds; null if it is not known",
            },
            "data": {"$ref": data},
        },
        "required": ["number", "event", "at", "data"],
    }


def _describe_frame(name: str, data: str) -> dict[str, Any]:
    """Return the schema of a server-sent event with this name; `data` refers to that of its data."""
    return {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "event": {"const": name, "type": "string"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"$ref": data},
            },
        },
        "required": ["event", "data"],
    }


def _rename(part: Any, lists: Mapping[tuple[str, ...], list[str]]) -> None:
    """Replace the lists of members, and the names of renamed classes, in a part of the document."""
    if isinstance(part, dict):
        schema = cast("dict[str, Any]", part)
        schema.pop("tsType", None)
        if isinstance(schema.get("enum"), list):
            schema["enum"] = lists.get(tuple(schema["enum"]), schema["enum"])
        if isinstance(name := schema.get("title"), str):
            schema["title"] = _COMPONENT_NAMES.get(name, name)
        if isinstance(target := schema.get("$ref"), str):
            name = target.removeprefix(_COMPONENTS)
            schema["$ref"] = _COMPONENTS + _COMPONENT_NAMES.get(name, name)
    for below in values_inside(part):
        _rename(below, lists)

"""Arguments that a model wrote as text are decoded by the tool's schema."""

import json

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel

from maniple.agents import Task
from maniple.agents.middleware.argument_decoding import decode_arguments
from tests.agents.endpoints import coder_with, results_shown
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")
NUMBERS = {"type": "array", "items": {"type": "integer"}}
SCHEMA = {
    "type": "object",
    "properties": {
        "code": {"type": "string"},
        "names": {"type": "array", "items": {"type": "string"}},
        "rows": {"anyOf": [NUMBERS, {"type": "null"}]},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "options": {"type": "object", "properties": {"limit": {"type": ["integer", "null"]}}},
        "either": {"anyOf": [{"type": "string"}, NUMBERS]},
        "open": {},
    },
}


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("names", '["a", "b"]', ["a", "b"]),
        ("names", "['a', 'it\\'s']", ["a", "it's"]),
        ("names", '```json\n["a"]\r\n```', ["a"]),
        ("names", json.dumps(json.dumps(["a"])), ["a"]),
        ("names", '["a", "b",]', ["a", "b"]),
        ("rows", '["1", 2]', [1, 2]),
        ("rows", "None", None),
        ("rows", "null", None),
        ("count", " 3 ", 3),
        ("count", "3.0", 3),
        ("share", "2.5", 2.5),
        ("share", "-1e3", -1000.0),
        ("deep", "True", True),
        ("deep", "false", False),
        ("options", '{"limit": "5"}', {"limit": 5}),
        ("options", "{'limit': None}", {"limit": None}),
        ("options", '{\r\n"limit": 1\r\n}', {"limit": 1}),
    ],
)
def test_a_text_of_the_wanted_type_is_decoded(name, written, value):
    decoded = decode_arguments(SCHEMA, {name: written})[name]
    assert decoded == value and type(decoded) is type(value)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("code", "[1, 2]"),
        ("code", "3"),
        ("code", "null"),
        ("either", "[1]"),
        ("open", "[1]"),
        ("names", "a, b"),
        ("names", '{"a": 1}'),
        ("names", '["a", '),
        ("count", "three"),
        ("count", "3.5"),
        ("deep", "maybe"),
        ("options", "[1]"),
        ("unknown", "[1]"),
    ],
)
def test_any_other_text_stays(name, written):
    assert decode_arguments(SCHEMA, {name: written}) == {name: written}


@pytest.mark.parametrize("wrapper", ["arguments", "parameters", "input"])
def test_a_wrapper_that_the_tool_does_not_take_is_dropped(wrapper):
    inside = {"code": "1", "count": "2"}
    expected = {"code": "1", "count": 2}
    assert decode_arguments(SCHEMA, {wrapper: inside}) == expected
    assert decode_arguments(SCHEMA, {wrapper: json.dumps(inside)}) == expected
    assert decode_arguments(SCHEMA, {wrapper: {"other": 1}}) == {wrapper: {"other": 1}}
    taking = {"type": "object", "properties": {wrapper: {"type": "object"}, "code": {}}}
    assert decode_arguments(taking, {wrapper: {"code": 1}}) == {wrapper: {"code": 1}}


class Filter(BaseModel):
    field: str
    values: list[int]


async def search(queries: list[str], filters: list[Filter], limit: int = 3, deep: bool = False) -> str:
    """Search."""
    return json.dumps([queries, [one.model_dump() for one in filters], limit, deep])


FILTERS = "[{'field': 'year', 'values': '[2020, 2021]'}]"
FOUND = [["a", "b"], [{"field": "year", "values": [2020, 2021]}], 5, True]
VALUES = {"queries": '["a", "b"]', "filters": FILTERS, "limit": "5", "deep": "True"}
TAGS = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in VALUES.items())


@pytest.mark.parametrize(
    "answer",
    [
        call("search", **VALUES),
        call("functions.search", **VALUES),
        call("search<|channel|>commentary", **VALUES),
        {"tool_calls": [{"name": "search", "arguments": json.dumps({"arguments": VALUES})}]},
        reply(f"I search.\n<tool_call>\n<function=search>\n{TAGS}</function>\n</tool_call>"),
    ],
)
async def test_the_tool_gets_values_of_its_types(answer):
    tool = StructuredTool.from_function(coroutine=search)
    async with coder_with([tool], answer, reply("Done.")) as (coder, server):
        await coder.work(TASK)
    (found,) = results_shown(server)
    assert json.loads(found.splitlines()[1]) == FOUND


async def test_what_does_not_fit_is_described():
    tool = StructuredTool.from_function(coroutine=search)
    wrong = call("search", queries="a", filters="[]")
    async with coder_with([tool], wrong, reply("Done.")) as (coder, server):
        await coder.work(TASK)
    (found,) = results_shown(server)
    assert "search was not run" in found and "queries" in found

"""After a call with wrong arguments the model sees the mistake, its arguments and the schema."""

import json

import pytest
from langchain_core.tools import StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import BaseModel, Field

from maniple.agents import Task
from maniple.agents.middleware.tool_errors import describe_argument_errors
from tests.agents.endpoints import coder_with, results_shown
from tests.openai_server import call, reply

pytestmark = pytest.mark.anyio
TASK = Task(request="read", title="Read", description="read on")
SCHEMA = {
    "type": "object",
    "properties": {"page": {"type": "integer"}},
    "required": ["page"],
}


class Reading(BaseModel):
    page: int = Field(ge=1, description="Counted from 1.")
    path: str = ""


async def read(page: int, path: str = "") -> str:
    """Read a page."""
    if path == "bad":
        Reading.model_validate({"page": 0})
    return f"page {page}"


async def of_a_server(**arguments) -> str:
    """Read a page."""
    raise ToolException(f"-32602: no such thing: {arguments}")


async def result_of(tool, **arguments) -> str:
    """Return the result of a call as the model gets it."""
    async with coder_with([tool], call(tool.name, **arguments), reply("Done.")) as (coder, server):
        await coder.work(TASK)
    (words,) = results_shown(server)
    return words


async def test_the_mistake_the_arguments_and_the_schema_are_shown():
    tool = StructuredTool.from_function(coroutine=read, args_schema=Reading)
    words = await result_of(tool, page=0, path="a" * 10_000)
    assert "read was not run." in words
    assert "page: Input should be greater" in words
    assert '"page": 0' in words
    assert "Counted from 1." in words
    assert len(words) < 2_000, "long arguments are shortened"


async def test_an_error_of_the_tool_itself_is_not_taken_for_one_of_its_arguments():
    tool = StructuredTool.from_function(coroutine=read, args_schema=Reading)
    words = await result_of(tool, page=1, path="bad")
    assert "read failed: ValidationError" in words
    assert "was not run" not in words


async def test_the_servers_message_about_wrong_arguments_precedes_the_schema():
    tool = StructuredTool(
        name="read", description="Read.", args_schema=SCHEMA, coroutine=of_a_server, handle_tool_error=True
    )
    words = await result_of(tool, seite=1)
    assert words.index("-32602") < words.index("missing: page") < words.index(json.dumps(SCHEMA["required"]))
    assert "missing" not in await result_of(tool, page=1)


class Item(BaseModel):
    sku: str
    count: int = Field(gt=0, description="How many of it.")


class Order(BaseModel):
    items: list[Item]
    gift: Item | None = None


async def order(order: Order) -> str:
    """Order."""
    return "ordered"


async def test_a_mistake_deep_inside_is_named_by_its_place_beside_the_whole_schema():
    tool = StructuredTool.from_function(coroutine=order)
    words = await result_of(tool, order={"items": [{"sku": "a", "count": 1}, {"count": 0}]})
    assert "order.items.1.sku: Field required" in words
    assert "order.items.1.count: Input should be" in words
    assert "How many of it." in words
    assert "$ref" not in words


async def test_a_mistake_deep_inside_that_a_server_refused_is_named_as_well():
    schema = convert_to_openai_function(StructuredTool.from_function(coroutine=order))["parameters"]
    tool = StructuredTool(
        name="order", description="Order.", args_schema=schema, coroutine=of_a_server, handle_tool_error=True
    )
    words = await result_of(tool, order={"items": [{"sku": "a", "count": "two"}], "gift": {"count": 1}})
    mistakes = "order.items.0.count: should be integer; order.gift: missing: sku"
    assert words.index("-32602") < words.index(mistakes)
    assert "How many of it." in words
    assert "It takes" not in await result_of(tool, order={"items": [{"sku": "a", "count": 2}], "gift": None})


def test_the_message_is_bounded_for_any_schema_and_arguments():
    properties = {f"field_{n}": {"type": "string", "description": "x" * 1_000} for n in range(100)}
    huge = {"type": "object", "properties": properties}
    tool = StructuredTool(name="read", description="Read.", args_schema=huge, coroutine=of_a_server)
    arguments = {f"a{n}": ["y" * 10_000] for n in range(1_000)}
    assert len(describe_argument_errors(tool, f"unknown: {', '.join(arguments)}", arguments)) < 6_000

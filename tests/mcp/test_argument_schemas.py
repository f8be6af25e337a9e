import time

import pytest

from maniple.mcp.tool_definitions import UnusableSchema, argument_schema


def test_references_are_written_out():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place", "description": "Where."}},
        "required": ["place"],
        "$defs": {"Place": {"type": "object", "properties": {"zip": {"type": "string"}}}},
    }
    assert argument_schema(schema) == {
        "type": "object",
        "properties": {
            "place": {"type": "object", "properties": {"zip": {"type": "string"}}, "description": "Where."}
        },
        "required": ["place"],
    }


def test_what_refers_to_itself_is_anything_there():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"properties": {"first": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    written = argument_schema(schema)
    assert written["properties"]["first"]["properties"]["next"] == {}
    assert argument_schema({"properties": {"all": {"$ref": "#"}}})["properties"] == {"all": {}}


def test_arguments_may_be_called_like_words_of_json_schema():
    names = ["$ref", "type", "examples", "definitions", "properties", "required", "config", "run_manager"]
    properties = {name: {"type": "string"} for name in names}
    assert argument_schema({"type": "object", "properties": properties})["properties"] == properties


def test_no_arguments_are_an_object_without_properties():
    assert argument_schema({}) == {"type": "object", "properties": {}}


def doubling(levels):
    parts = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**parts, f"d{levels}": {}}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "not described"),
        ({"type": "array"}, "not a JSON object"),
        ({"properties": []}, "not described"),
        ({"properties": {"a": True}}, "not described"),
        ({"required": "a"}, "not a list"),
        ({"properties": {"a": {"$ref": "https://evil.test/schema"}}}, "another document"),
        ({"properties": {"a": {"$ref": "#/nowhere"}}}, "does not exist"),
        ({"properties": {"a": {"description": "x" * 40_000}}}, "longer than"),
        ({"properties": {str(n): {} for n in range(40_000)}}, "longer than"),
        ({"enum": [[]] * 1_000_000}, "longer than"),
        (doubling(12), "longer than"),
        (doubling(19), "nested deeper"),
    ],
)
def test_what_is_no_use_or_too_much_is_refused_quickly(schema, words):
    began = time.process_time()
    with pytest.raises(UnusableSchema, match=words):
        argument_schema(schema)
    assert time.process_time() - began < 1


def test_a_schema_of_endless_depth_is_refused():
    deep = {}
    for _ in range(10_000):
        deep = {"items": deep}
    with pytest.raises(UnusableSchema, match="nested deeper"):
        argument_schema({"properties": {"a": deep}})

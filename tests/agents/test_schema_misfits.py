"""Where a value does not have the structure that a schema describes."""

import time

import pytest

from maniple.agents.middleware.tool_errors import find_schema_errors

COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CLOSED = {**COUNT, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "value", "wrong"),
    [
        (COUNT, {"n": 1, "more": True}, []),
        (COUNT, {"n": 1.0}, []),
        (COUNT, {"n": True}, ["n: should be integer"]),
        (COUNT, {}, ["missing: n"]),
        (CLOSED, {"n": 1, "m": 2}, ["unknown: m"]),
        ({"type": "array", "items": COUNT}, [{"n": 1}, {"n": "1"}], ["1.n: should be integer"]),
        ({"type": ["string", "null"]}, 1, ["should be string or null"]),
        ({"enum": ["a", "b"]}, "c", ['should be one of ["a", "b"]']),
        ({"anyOf": [COUNT, {"type": "null"}]}, None, []),
        ({"anyOf": [CLOSED, {"type": "string"}]}, {"n": 1, "m": 2}, ["unknown: m"]),
        ({"anyOf": [COUNT, {"type": "string"}]}, 1.5, ["should be object"]),
    ],
)
def test_what_is_wrong_is_named_with_its_place(schema, value, wrong):
    assert list(find_schema_errors(schema, value)) == wrong


@pytest.mark.parametrize(
    "schema",
    [
        *(True, None, "object", {"type": 5}, {"type": "colour"}, {"enum": 3}, {"anyOf": {}}, {"required": 1}),
        *({"properties": []}, {"items": 7}, {"pattern": "(a+)+$"}, {"required": [["a"]], "type": {}}),
    ],
)
def test_what_is_no_schema_describes_anything(schema):
    values = ({"a": [1]}, ["a" * 50 + "!"], "a" * 50 + "!", 1, None)
    assert [
        one for value in values for one in find_schema_errors(schema, value) if "missing" not in one
    ] == []


def test_alternatives_in_alternatives_take_no_time():
    schema = {"type": "integer"}
    for _ in range(12):
        schema = {"anyOf": [schema, schema]}
    began = time.process_time()
    assert list(find_schema_errors(schema, "x")) == ["should be integer"]
    assert time.process_time() - began < 2

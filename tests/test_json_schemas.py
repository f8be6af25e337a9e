"""Schemas that others write are applied in bounded time, and fetch nothing."""

import pytest

from maniple.json_schemas import SchemaNotApplicable, find_misfit, find_schema_mistake, find_unchecked

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_a_misfit_names_its_place():
    assert find_misfit(NUMBER, {"n": 1}) == ""
    assert find_misfit(NUMBER, {"n": "1"}).startswith("$.n: ")
    assert find_misfit({"$ref": "#/$defs/n", "$defs": {"n": NUMBER}}, {})
    assert find_misfit(True, 1) == ""
    assert find_misfit(False, 1)


def test_a_schema_that_is_none_is_known():
    assert find_schema_mistake(NUMBER) == ""
    assert "text" in find_schema_mistake({"type": "text"})
    assert find_schema_mistake([])
    known = (r"^\p{L}+$", "(?<name>a)", "(?!a)")
    assert [find_schema_mistake({"pattern": one}) for one in known] == [""] * 3
    assert "regex" in find_schema_mistake({"pattern": "("})


def test_a_pattern_of_a_client_takes_linear_time_and_one_that_is_unknown_matches_all():
    slow = {"type": "string", "pattern": "^(a+)+$"}
    assert find_misfit(slow, "a" * 5_000 + "b")
    assert find_misfit(slow, "aaa") == ""
    assert find_misfit({"pattern": "^(?!a)"}, "a") == ""


def test_what_is_not_checked_is_known_before():
    assert find_unchecked({**NUMBER, "pattern": "^(a+)+$", "const": {"pattern": "^(?!a)"}}) == ""
    assert "(?!a)" in find_unchecked({"properties": {"n": {"pattern": "^(?!a)"}}})
    assert "patternProperties" in find_unchecked({"patternProperties": {"a": {}}})
    assert find_unchecked(False) == ""


def test_references_that_double_at_each_level_end():
    levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    schema = {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {"type": "integer"}}}
    with pytest.raises(SchemaNotApplicable, match="checks"):
        find_misfit(schema, "a")


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_schemas_that_are_applied_again_at_each_level_end(keyword):
    schema = {"type": "object"}
    for _ in range(40):
        schema = {keyword: [schema], "unevaluatedProperties": False}
    assert not find_schema_mistake(schema)
    with pytest.raises(SchemaNotApplicable, match="checks"):
        find_misfit(schema, {"a": 1})


def test_a_long_value_is_checked_to_its_end():
    schema = {"type": "array", "items": NUMBER}
    assert find_misfit(schema, [{"n": 1}] * 5_000) == ""
    assert find_misfit(schema, [*[{"n": 1}] * 5_000, {}]).startswith("$[5000]: ")


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://127.0.0.1:9/a"}, {"patternProperties": {"a": {}}}, {"$ref": "#/none"}]
)
def test_a_schema_that_cannot_be_applied_says_so(schema):
    with pytest.raises(SchemaNotApplicable):
        find_misfit(schema, {"a": 1})

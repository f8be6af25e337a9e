"""Which answers of a batch are accepted."""

import pytest

from maniple.batches import AnswerRule, InvalidBatch

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("rule", "accepted", "refused"),
    [
        ({}, ["a"], ["", " \n"]),
        ({"pattern": r"^\d+$"}, ["12"], ["a12", ""]),
        ({"json_schema": NUMBER}, ['{"n": 1}', '```json\n{"n": 1}\n```\n'], ['{"n": "1"}', "n is 1", "[]"]),
        ({"json_schema": True}, ["[]"], ["no JSON"]),
        ({"json_schema": False}, [], ["[]"]),
        ({"json_schema": NUMBER, "pattern": "1"}, ['{"n": 1}'], ['{"n": 2}']),
    ],
)
def test_an_answer_must_fulfil_all_that_is_given(rule, accepted, refused):
    made = AnswerRule(**rule)
    made.require_valid()
    assert [made.find_fault(one) for one in accepted] == [""] * len(accepted)
    assert all(made.find_fault(one) for one in refused)


def test_a_schema_fetches_nothing():
    rule = AnswerRule(json_schema={"$ref": "http://127.0.0.1:9/schema.json"})
    assert "cannot be applied" in rule.find_fault("{}")


def test_a_pattern_of_a_schema_takes_linear_time():
    rule = AnswerRule(json_schema={"type": "string", "pattern": "^(a+)+$"})
    rule.require_valid()
    assert rule.find_fault(f'"{"a" * 5_000}b"')


@pytest.mark.parametrize(
    "rule",
    [
        {"pattern": "("},
        {"json_schema": {"type": "number!"}},
        {"json_schema": {"items": {"pattern": "^(?!a)"}}},
        {"json_schema": {"patternProperties": {"a": {}}}},
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(rule):
    with pytest.raises(InvalidBatch):
        AnswerRule(**rule).require_valid()

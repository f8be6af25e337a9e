"""The worked examples for small models: their material is refused in answers."""

import json

import pytest

from maniple.prompts.examples import find_copied, read_examples, read_material

LABELS = ("route", "changes")
"""Examples whose answers are labels: their texts reach nobody."""
COPYABLE = [(name, pair) for name in read_examples() for pair in read_examples()[name] if name not in LABELS]


@pytest.mark.parametrize(("name", "pair"), COPYABLE, ids=lambda value: str(value)[:40])
def test_each_copied_plan_or_program_is_found_out(name, pair):
    question, answer = pair
    written = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    assert find_copied(written, "and plus 5?"), f"{name} needs a phrase in the material"
    assert not find_copied(written, question)


@pytest.mark.parametrize("phrase", read_material())
def test_a_phrase_of_the_material_is_in_an_example(phrase):
    examples = json.dumps(read_examples(), ensure_ascii=False)
    assert "".join(phrase.split()) in "".join(examples.split())


@pytest.mark.parametrize(
    ("written", "given", "is_copied"),
    [
        ("print(12 * 9 + 10)", "and plus 10?", True),
        ("print(112*9)", "and plus 10?", False),
        ("print(12*95)", "and plus 10?", False),
        ("print(12*9)", "Multiply 12 by 9", False),
        ("print(math.factorial(17)+10)", "and plus 10?", True),
        ("print(math.factorial(17))", "Arrange 17 people", False),
        ("Search for the History of coffee", "A report on tea", True),
        ("Search for the history of coffee", "A report on Coffee", False),
        ("print([2, 3, 5, 7, 11, 13, 17])", "The primes below 18", False),
    ],
)
def test_a_phrase_of_an_example_is_copied_unless_the_request_has_its_subject(written, given, is_copied):
    assert bool(find_copied(written, given)) is is_copied

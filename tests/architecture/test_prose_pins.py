"""Assertions that hold sentences: each is to hold a code, a setting's name, a path or a number instead."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
SENTENCE_WORDS = 5

# It only gets lower. Who shortens assertions lowers it with them.
MAX_SENTENCES = 381
_UNNOTICED = 25


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of five words or more in an assertion or a `match=`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            yield from _long_texts(node.test)
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield from _long_texts(node.value)


def _long_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = [word for word in node.value.split() if any(map(str.isalpha, word))]
            if len(words) >= SENTENCE_WORDS:
                yield node.lineno, node.value


def test_a_sentence_is_found_in_an_assertion_and_in_a_match() -> None:
    asserting = 'assert "the key is not set" in text\nassert f"{n} of five words is too long" == text\n'
    matching = 'with raises(Exception, match="the key is not set"):\n    read("five words that are read")\n'
    assert [line for line, _ in sentences(asserting + matching)] == [1, 2, 3]
    assert [
        *sentences('assert "BASIC_API_KEY is not set" in text, "a message may be as long as it wants"')
    ] == []


def test_assertions_hold_fewer_and_fewer_sentences() -> None:
    found = {
        str(path.relative_to(TESTS)): [*sentences(path.read_text(encoding="utf-8"))]
        for path in sorted(TESTS.rglob("*.py"))
    }
    count = sum(map(len, found.values()))
    worst = sorted(found, key=lambda path: len(found[path]), reverse=True)[:10]
    assert count <= MAX_SENTENCES, f"pin codes, names and paths instead; most are in {worst}"
    assert count > MAX_SENTENCES - _UNNOTICED, f"lower MAX_SENTENCES to {count}"

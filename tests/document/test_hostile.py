"""Hostile texts are read in linear time, and nothing is left out in silence."""

from time import process_time

import pytest

from maniple.document import nodes, parse_document
from maniple.document.nodes import iterate_nodes
from maniple.document.tree import MAX_LENGTH

SIZE = 20_000
MOST_SECONDS = 3.0
"""More than ten times what is measured, and less than what quadratic time would take."""
PATTERNS = [
    "[",
    "[a ",
    "[a](b ",
    "![a",
    "*a ",
    "**a",
    "*_",
    "`a``b",
    "$a ",
    "\\(a ",
    "$$ a\n",
    "\\begin{align} ",
    "[^a]: x\n",
    "[^a]: ",
    "[a\n",
    "<a ",
    "<code>",
    "[1]",
    "a[1]",
    "a[1] ",
    "> ",
    "- ",
    "&amp;",
    "a_",
    "abcd<sup>1</sup>",
    "|\n",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_repeated_pattern_takes_linear_time(pattern: str):
    head = "|a|b|\n|-|-|\n" if pattern == "|\n" else ""
    begun = process_time()
    document = parse_document(head + pattern * (SIZE * 4 // len(pattern)))
    assert process_time() - begun < MOST_SECONDS
    assert document.children


@pytest.mark.parametrize(
    ("markdown", "word"),
    [
        ("> " * 60 + "deep [3]", "deep"),
        ("".join(" " * (2 * depth) + f"- level{depth}\n" for depth in range(40)), "level39"),
        ("[a " * 1000 + "far [3]", "far"),
        ("a " * (MAX_LENGTH // 2) + "far", "far"),
    ],
)
def test_what_exceeds_a_limit_is_text_and_said(markdown: str, word: str):
    document = parse_document(markdown)
    texts = [one.text for one in iterate_nodes(document) if isinstance(one, nodes.TextNode)]
    assert any(word in text for text in texts)
    assert document.simplified


def test_emphasis_of_any_depth_leaves_its_words():
    document = parse_document("**" * 2000 + "deep" + "**" * 2000)
    assert any(isinstance(one, nodes.TextNode) and one.text == "deep" for one in iterate_nodes(document))

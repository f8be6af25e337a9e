"""Which lines are code, compared with a parser of CommonMark, whose result is the upper limit."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from maniple.reading.markdown import MarkdownScanner


def code(text: str, *, strict: bool = False) -> list[int]:
    """Return the numbers of the lines that are code and not blank."""
    fences = MarkdownScanner(strict=strict)
    lines = [(fences.take(line), line) for line in text.split("\n")]
    return [number for number, (read, line) in enumerate(lines) if read.is_code and line.strip(" \t>")]


def code_of_a_parser(text: str, *, html: bool = False, tables: bool = False) -> list[int]:
    parser = MarkdownIt("commonmark", {"html": html}).disable("reference")
    parser = parser.enable("table") if tables else parser
    fences = [token.map for token in parser.parse(text) if token.type == "fence" and token.map]
    lines = [*text.split("\n"), ""]
    return [line for begin, end in fences for line in range(begin, end) if lines[line].strip(" \t>")]


EXAMPLES = 300
LINE = st.sampled_from(
    [
        "",
        "a",
        "  a",
        "    a",
        "```",
        "~~~",
        "  ```",
        "   ```",
        "    ```",
        "```py",
        "````",
        "``` `",
        "> a",
        "> ```",
        "> > ~~~",
        "- a",
        "- ```",
        "-",
        "  - ```",
        "1. a",
        "2. a",
        "10. ```",
        "   ~~~",
        "      ```",
        "# a",
        "---",
        "===",
        ">",
        "\t```",
        "-\t```",
        "> - ```",
        ">   ```",
        "+ - a",
        "* * *",
        "-     a",
        "```\t",
        "~~~ `",
        "\ta",
    ]
)
WILD = st.sampled_from(
    [
        "<!-- a",
        "-->",
        "<div>",
        "</div>",
        "<a href='x'>",
        "<pre>",
        "| a | b |",
        "|---|---|",
        "[a]: b",
        "2. ```",
        "``` markdown",
        "```md",
        "<!-- a -->",
        "<https://a.test>",
        "<b>a</b>",
        "| ``` |",
        "a ```",
    ]
)


@given(st.lists(LINE, max_size=14).map("\n".join))
@settings(max_examples=EXAMPLES)
def test_code_is_where_a_parser_finds_it(text):
    assert code(text) == code_of_a_parser(text)


@given(st.lists(LINE | WILD, max_size=14).map("\n".join), st.booleans(), st.booleans())
@settings(max_examples=EXAMPLES)
def test_strictly_read_nothing_is_code_that_any_parser_shows_as_text(text, html, tables):
    shown = set(code(text, strict=True)) - set(code_of_a_parser(text, html=html, tables=tables))
    assert not shown


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1. Do:\n\n   ```sh\n   a\n   ```\n\nb", [2, 3, 4]),
        ("10. Do:\n\n    ```sh\n    a\n    ```\n    b", [2, 3, 4]),
        ("a\n\n    ```\nb\n    ```", []),
        ("> ```\n> a\nb", [0, 1]),
        ("- ```\n  a\nb", [0, 1]),
        ("~~~\na\n```\nb", [0, 1, 2, 3]),
        ("```\na\n````\nb", [0, 1, 2]),
    ],
)
def test_code_ends_with_its_fence_its_list_item_and_its_quote(text, lines):
    assert code(text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("```markdown\na\n```py\nb\n```\nc\n```\nd", [0, 2, 3, 4, 6]),
        ("```markdown\n~~~\n```\na", [0, 1]),
        ("> ```md\n> a\n> ```", []),
        ("<!--\n```\n-->\na\n```\n", []),
        ("<!-- a -->\n\n```\na\n```", [2, 3, 4]),
        ("a\n\n    ```\n\n```\nb\n```", []),
    ],
)
def test_strictly_read_a_fence_hides_only_what_no_reader_shows(text, lines):
    assert code(text, strict=True) == lines


@pytest.mark.parametrize(
    "piece",
    [
        "a\n",
        "> ",
        ">\n",
        "- ",
        "- a\n",
        "```\n",
        "`",
        "~",
        "  - a\n    - b\n",
        "<a ",
        "* ",
        "\t",
        "1. ",
        "<!--\n",
    ],
)
def test_300_kilobytes_of_anything_is_followed_in_linear_time(piece):
    small, large = (_seconds(piece * (size // len(piece))) for size in (30_000, 300_000))
    assert large < 30 * small + 1
    assert large < 4


def _seconds(text: str) -> float:
    begin = time.process_time()
    code(text, strict=True)
    return time.process_time() - begin

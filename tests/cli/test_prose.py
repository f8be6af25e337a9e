import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from maniple.cli.render.document_text import SafeMarkdown
from maniple.cli.render.markdown import Excerpt, LineSplitter, MarkdownSplitter

DOCUMENT = """# Title

A paragraph
over two lines.

- one

- two

  with more

| a | b |
|---|---|
| 1 | 2 |

```python
x = 1

# no heading
```

1. first

2. second

End"""
BLOCKS = [
    "# Title\n\n",
    "A paragraph\nover two lines.\n\n",
    "- one\n\n- two\n\n  with more\n\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "```python\nx = 1\n\n# no heading\n```\n\n",
    "1. first\n\n2. second\n\n",
    "End",
]


def shown(text: str, width: int = 60) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(Excerpt(SafeMarkdown(text)))
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_markdown_is_cut_between_blocks_and_nowhere_else_however_it_streams(size: int) -> None:
    blocks = MarkdownSplitter()
    pieces = [DOCUMENT[start : start + size] for start in range(0, len(DOCUMENT), size)]
    finished = [block for piece in pieces if (block := blocks.feed(piece))]

    whole = "".join(finished) + blocks.flush()
    assert whole == DOCUMENT
    if size == 1:
        assert finished == BLOCKS[:-2]  # the last line may still become an item of the list


@given(st.lists(st.text(alphabet="ab#-*`|>1. \n[]:", max_size=12), max_size=30))
def test_no_streamed_text_is_lost_or_printed_twice(pieces: list[str]) -> None:
    blocks, lines = MarkdownSplitter(), LineSplitter()
    in_blocks = "".join(blocks.feed(piece) for piece in pieces) + blocks.flush()
    in_lines = [part for piece in pieces if (part := lines.feed(piece))]

    assert in_blocks == "".join(pieces)
    assert "".join([*in_lines, lines.flush()]).replace("\n", "") == "".join(pieces).replace("\n", "")


def test_addresses_are_in_sight_and_shown_once() -> None:
    text = "[a page](https://evil.example/x), <https://b.example/y> and `code`"
    assert shown(text) == "a page (https://evil.example/x), https://b.example/y and\ncode"


def test_definitions_of_links_stay_readable_when_their_text_is_long_printed() -> None:
    assert shown("[1]: https://a.example/x\n[2]: https://b.example/y") == (
        "[1]: https://a.example/x\n[2]: https://b.example/y"
    )


def test_headings_are_left_aligned_and_rich_markup_is_text() -> None:
    assert (
        shown("# A heading\n\n[bold]not markup[/bold] :smile:")
        == "A heading\n\n[bold]not markup[/bold] :smile:"
    )


def test_an_excerpt_has_no_blank_lines_around_it_and_only_the_last_lines() -> None:
    console = Console(file=io.StringIO(), width=20)
    console.print(Excerpt("\n\none\ntwo\nthree\n\n", last=2))
    assert console.file.getvalue() == "two\nthree\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- [x] done\n- [ ] open", [" • ☑ done", " • ☐ open"]),
        ("\\(a+b\\) and $c$\n\n\\[\nd\n\\]", ["a+b and c", "", "  d"]),
        ("One,<br>two[^1].\n\n[^1]: Note.", ["One,", "two[^1].", "", "[^1]: Note."]),
        ("> [!TIP]\n> Do.", ["▌ Tip", "▌ Do."]),
        ("3. x\n   - y\n4. z", [" 3 x", "    • y", " 4 z"]),
        ("![Bars](a.png) [unverified]", ["Bars (a.png) [unverified]"]),
    ],
)
def test_what_stands_for_itself_is_printed_without_its_markup(text: str, lines: list[str]) -> None:
    assert shown(text).split("\n") == lines


@pytest.mark.parametrize("width", [40, 60, 100])
def test_a_wide_table_is_divided_into_parts_that_repeat_its_first_column(width: int) -> None:
    cells = [f"unbreakable{column}" for column in range(16)]
    table = f"| {' | '.join(cells)} |\n|{'---|' * 16}\n| {' | '.join(cells)} |\n"
    words = shown(table, width).split()
    assert {*cells} <= {*words}
    assert all(one in cells or not one.strip("─") for one in words)
    assert words.count(cells[0]) > words.count(cells[1]) == 2


def test_a_word_longer_than_the_line_is_printed_whole_in_parts() -> None:
    assert shown("| a |\n|---|\n| " + "x" * 50 + " |", width=20).count("x") == 50


@given(st.text(alphabet="ab#-*`|>1. \n[]:$\\(<br^!x", max_size=80), st.integers(4, 40))
def test_every_text_can_be_printed_on_every_width(text: str, width: int) -> None:
    shown(text, width)

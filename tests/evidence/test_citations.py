"""The citations of a report."""

import time

import pytest

from maniple.evidence.blocks import Blocks
from maniple.evidence.citations import find_citations


def cited(block: str, kind: str) -> list[str]:
    return [one.text for one in find_citations(block) if one.kind == kind]


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("see [this](https://a.test/x_(y)).", "https://a.test/x_(y)"),
        ('see [this]( <https://a.test/x> "a title of four words" )', "https://a.test/x"),
        ("see <https://a.test/x>", "https://a.test/x"),
        ("see (https://a.test/x), and", "https://a.test/x"),
        ("参见https://a.test/x。", "https://a.test/x"),
        ("see www.a.test/x.", "www.a.test/x"),
        ("[r]: https&#58;//a.test/x 'T'", "https://a.test/x"),
        ("[t](https\\://a.test/x)", "https://a.test/x"),
        ("[t](//a.test/x)", "//a.test/x"),
        ("![i](https://a.test/x.png)", "https://a.test/x.png"),
        ('<a href="https://a.test/x">t</a>', "https://a.test/x"),
        ("| HTTP://a.test/x |", "HTTP://a.test/x"),
    ],
)
def test_every_form_of_an_address_is_found_once(text, url):
    assert cited(text, "url") == [url]
    assert cited(text, "quotation") == []


def test_code_cites_nothing_but_addresses_in_a_line():
    fenced = '```sh\ncurl https://a.test [9]\n"one two three four"\n```\n'
    assert find_citations(f'{fenced}`[9] "one two three four"` and a [local](./file.csv) [x] [2024]') == []
    assert cited("see `https://a.test/x`", "url") == ["https://a.test/x"]


def test_a_fence_around_markdown_hides_nothing():
    text = "```markdown\n# T\n\nsee https://a.test\n\n```\n\n```\nhttps://code.test\n```\n"
    assert cited(text, "url") == ["https://a.test"]


def test_what_follows_a_fence_around_markdown_or_a_block_quote_with_code_is_text():
    blocks = Blocks()
    wrapped = "```markdown\n\n# T\n\ntext\n\n```\nsee https://a.test\n"
    cut = [*blocks.feed(wrapped), *blocks.end()]
    assert [url for block in cut for url in cited(block, "url")] == ["https://a.test"]
    assert cited("> ```\n> https://code.test\nsee https://a.test\n", "url") == ["https://a.test"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("so [3].", (3,)),
        ("so[3]", (3,)),
        ("so [1, 2;4–6]", (1, 2, 4, 5, 6)),
        ("如此【7†来源】。", (7,)),
        ("so [^2], a footnote [3]", (3,)),
        ("如此[来源9]，如此【8、9】", (9, 8, 9)),
        ("[3](https://a.test)", (3,)),
        ("[0, 1] and [2024] and [3]: definition", (3,)),
        ("[3]: https://a.test", ()),
    ],
)
def test_numbers_are_read(text, numbers):
    found = [number for one in find_citations(text) if one.kind == "number" for number in one.numbers]
    assert tuple(found) == numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He says “one two three four” [2]. Then [3].", [("one two three four", (2,))]),
        ("He says “one two three four.” [2] Then [3].", [("one two three four.", (2,))]),
        ('As [2] has it, "one two three four". Then [3].', [("one two three four", (2,))]),
        (
            "«un deux trois quatre» et „eins zwei drei vier“",
            [("un deux trois quatre", ()), ("eins zwei drei vier", ())],
        ),
        ("他说「人工智能正在改变整个世界」[2]。", [("人工智能正在改变整个世界", (2,))]),
        ("> one two three four\n> — Somebody [4]\n", [("one two three four", (4,))]),
        ("> King: “one two three four”\n", [("one two three four", ())]),
        ("> **King:** “one two three four” [2]", [("one two three four", (2,))]),
        ("> **Note:** one two three four", []),
        ("> [!TIP]\n> one two three four five", []),
        ('# A "heading of four words" here', [("heading of four words", ())]),
        ('the "few words only" and 5" or 6" wide', []),
        ('| "one two three four" [1] | "a b c d" [2] |', [("one two three four", (1,)), ("a b c d", (2,))]),
    ],
)
def test_quotations_are_read_with_the_numbers_of_their_sentences(text, expected):
    quoted = [(one.text, one.numbers) for one in find_citations(text) if one.kind == "quotation"]
    assert quoted == expected


@pytest.mark.parametrize(
    "piece",
    [
        "](",
        "[a](b",
        '"a b c d e" [1]. ',
        '"',
        "“",
        "`",
        "``a`",
        "[1]",
        "http://a)",
        "> a b c d e\n",
        "[1](",
        "「」",
        "[1,",
    ],
)
def test_200_kilobytes_of_anything_are_read_in_linear_time(piece):
    small, large = (_seconds(piece * (size // len(piece))) for size in (25_000, 200_000))
    assert large < 40 * small + 0.5


def _seconds(text: str) -> float:
    begin = time.process_time()
    find_citations(text)
    return time.process_time() - begin


REPORT = """# Title

A paragraph
of two lines.

- a list
- of two

```python
a = 1

b = 2
```
behind the code

| a | b |
|---|---|
| 1 | 2 |
"""


@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_a_text_is_cut_at_blank_lines_headings_and_code(size):
    blocks = Blocks()
    cut = [block for at in range(0, len(REPORT), size) for block in blocks.feed(REPORT[at : at + size])]
    cut += blocks.end()
    assert "".join(cut) == REPORT
    assert [block.split("\n")[0] for block in cut] == [
        "# Title",
        "A paragraph",
        "- a list",
        "```python",
        "behind the code",
        "| a | b |",
    ]


def test_a_block_is_given_as_soon_as_it_is_whole():
    blocks = Blocks()
    assert blocks.feed("a\n") == []
    assert blocks.feed("\nb") == ["a\n\n"]
    assert blocks.end() == ["b"]


def test_what_a_figure_is_called_cites_nothing_but_a_remote_image_does():
    block = "![Sales [9] “these are many words that stand in no source”](figures/a-[3].png) as in [1]"
    assert [one.text for one in find_citations(block)] == ["[1]"]
    assert [one.kind for one in find_citations("![Sales](https://evil.test/a.png)")] == ["url"]

"""Pieces of Markdown from which tests build reports, and a reader of what a tree consists of."""

from hypothesis import strategies as st

from maniple.document import nodes
from maniple.document.tree import parse_document

INLINES = [
    "Output rose by 5.3 % [3]",
    "*so* it **is**",
    "[see [2] here](https://a.test/x)",
    "![a *chart*](chart.png)",
    "`x[3]`",
    "<code>y[3]</code>",
    r"$\sqrt[9]{5}$",
    r"\(a[7]\)",
    "a&amp;b \\* c",
    "[^1]",
    "【3†L1】",
    "[unverified]",
    "<br>",
    "~~old~~",
    "1 < 2 [4, 5]",
    "他说[6]。",
]
BLOCKS = [
    "# {} it is",
    "{}\nand {}",
    "- {}\n- [x] {}\n  more",
    "1. {}\n\n   {}\n2. b",
    "> {}\n> {}",
    "> [!NOTE]\n> {}",
    "| a | {} |\n|:--|--:|\n| b \\| c | {} |",
    "[^1]: {}\n\n    {}",
    "```python\nx = a[3]\n```",
    "    x = a[3]",
    "$$\nx\n= [3]\n$$",
    "{}\n===",
    "---",
    '[name]: https://a.test/ "title"',
    "> - {}\n>   1. {}",
]
"""Blocks; each `{}` is to be replaced by inline text."""
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def reports(draw: st.DrawFn) -> str:
    """Draw a report that has `\\n` as its line ends."""
    blocks: list[str] = []
    for block in draw(st.lists(st.sampled_from(BLOCKS), max_size=6)):
        while "{}" in block:
            inlines = draw(st.lists(st.sampled_from(INLINES), min_size=1, max_size=3))
            text = " ".join(inlines)
            block = block.replace("{}", text.replace("|", "\\|") if block[0] == "|" else text, 1)
        blocks.append(block)
    return "\n\n".join(blocks)


def kinds(markdown: str, *, html: bool = True) -> list[str]:
    """Return the kinds of all nodes but texts, in order."""
    found = nodes.iterate_nodes(parse_document(markdown, html=html))
    return [
        type(one).__name__.removesuffix("Node")
        for one in found
        if not isinstance(one, nodes.TextNode | nodes.DocumentTree)
    ]


def sources(markdown: str, kind: type[nodes.DocumentNode]) -> list[str]:
    """Return the source of all nodes of a kind."""
    found = nodes.iterate_nodes(parse_document(markdown))
    return [markdown[one.start : one.end] for one in found if isinstance(one, kind)]

"""Where a report is parted while it is written: each part can be read alone."""

import pytest

from maniple.evidence.blocks import Blocks


def parted(text: str) -> list[str]:
    blocks = Blocks()
    cut = [*blocks.feed(text), *blocks.end()]
    assert "".join(cut) == text
    return cut


@pytest.mark.parametrize(
    "text",
    [
        "1. a\n\n   ```\n   b\n   ```\n\n   c\n",
        "- a\n\n      far\n",
        "<blockquote>\n\na\n\n</blockquote>\n",
        "<!--\n\n```\n\n-->\n\na\n",
        "a\n    ```\n\n```\nb\n",
    ],
)
def test_what_is_only_understood_together_is_not_parted(text):
    assert parted(text) == [text]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("- a\n\n- b\n\nc\n", ["- a\n\n", "- b\n\n", "c\n"]),
        ("> a\n\n> b\n", ["> a\n\n", "> b\n"]),
        (
            "```md\na\n\n```py\nb\n\n```\nc\n```\nd",
            ["```md\n", "a\n\n", "```py\nb\n\n```\n", "c\n```\n", "d"],
        ),
    ],
)
def test_what_is_understood_alone_is_a_part(text, parts):
    assert parted(text) == parts

import random

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.token import Token

from maniple.document.inline_dispatch import DispatchingInline
from maniple.document.syntax import markdown_parser

_PIECES = [
    *"[]()*_`~!<>$\\&# \na1é.:",
    "**",
    "[3]",
    "[^1]",
    "](http://a)",
    "<sup>3</sup>",
    "&amp;",
    "![x](y)",
]


def _trying_all(html: bool) -> MarkdownIt:
    """Return the parser of reports with the library's loop, which tries every rule at every place."""
    parser = markdown_parser.__wrapped__(html=html)
    inline = ParserInline()
    inline.ruler, inline.ruler2 = parser.inline.ruler, parser.inline.ruler2
    inline.terminator_re = parser.inline.terminator_re
    parser.inline = inline
    return parser


def _shown(tokens: list[Token]) -> list[object]:
    return [token.as_dict() for token in tokens]


def test_the_dispatch_finds_the_same_elements_as_trying_every_rule() -> None:
    chance = random.Random(38)
    for html in (True, False):
        fast, slow = markdown_parser(html=html), _trying_all(html)
        assert isinstance(fast.inline, DispatchingInline)
        for _ in range(400):
            text = "".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 80)))
            assert _shown(fast.parse(text)) == _shown(slow.parse(text)), text


def test_brackets_nested_beyond_the_limit_end_like_those_of_the_library() -> None:
    fast, slow = markdown_parser(html=True), _trying_all(True)
    for text in ("[" * 60 + "a" + "](b)" * 60, "*" * 90 + "a", "![" * 30 + "x" + "](y)" * 30):
        assert _shown(fast.parse(text)) == _shown(slow.parse(text))

"""An inline parser that calls only the rules whose elements begin with the character at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import text as text_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from markdown_it.rules_inline import StateInline

    InlineRule = Callable[[StateInline, bool], bool]


class DispatchingInline(ParserInline):
    """The rules of `inline`, with the same results.

    `beginnings` are the first characters of the elements of each rule. A rule without beginnings is tried at
    each character. That of texts stops before each beginning.
    """

    def __init__(self, inline: ParserInline, beginnings: Mapping[InlineRule, str]) -> None:
        super().__init__()
        self.ruler, self.ruler2 = inline.ruler, inline.ruler2
        for character in "".join(beginnings.values()):
            self.add_terminator_char(character)
        rules = self.ruler.getRules("")
        self._others = tuple(rule for rule in rules if rule not in beginnings)
        self._rules = {
            character: tuple(
                rule
                for rule in rules
                if rule is not text_rule and (rule not in beginnings or character in beginnings[rule])
            )
            for character in {*"".join(beginnings.values())}
        }

    def skipToken(self, state: StateInline) -> None:
        """Move `state` behind the element at its place, without tokens for it."""
        pos = state.pos
        if pos in state.cache:
            state.pos = state.cache[pos]
            return
        if state.level >= state.md.options["maxNesting"]:
            state.pos = state.posMax + 1
        else:
            state.level += 1
            rules = self._rules.get(state.src[pos], self._others)
            is_found = any(rule(state, True) for rule in rules)
            state.level -= 1
            state.pos = max(state.pos, pos + 1) if is_found else state.pos + 1
        state.cache[pos] = state.pos

    def tokenize(self, state: StateInline) -> None:
        """Append the tokens from the place of `state` to its end."""
        end, most = state.posMax, state.md.options["maxNesting"]
        source, rules, others = state.src, self._rules, self._others
        while state.pos < end:
            character = source[state.pos]
            # Not `any`, because this is the innermost loop.
            for rule in rules.get(character, others) if state.level < most else ():
                if rule(state, False):
                    break
            else:
                state.append_pending(character)
                state.pos += 1
        if state.pending:
            state.pushPending()

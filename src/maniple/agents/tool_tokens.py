"""What the descriptions of tools take of a prompt."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool

from maniple.llms.windows import count_tokens


class ToolTokens:
    """The tokens that descriptions of tools take: an agent's own, and those that come and go beside them."""

    def __init__(self, own: Sequence[BaseTool]) -> None:
        self._own = {id(tool): tool for tool in own}
        self._tokens = count_tokens((), own)
        self._offered: Sequence[BaseTool | dict[str, Any]] = ()
        self._offered_tokens = 0

    def of(self, tools: Sequence[BaseTool | dict[str, Any]]) -> int:
        """Return what these take; those that are not the agent's own are counted when they have changed."""
        offered = [tool for tool in tools if id(tool) not in self._own]
        if [*map(id, offered)] != [*map(id, self._offered)]:
            self._offered, self._offered_tokens = offered, count_tokens((), offered)
        return self._tokens + self._offered_tokens

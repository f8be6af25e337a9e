"""Addresses and names that an agent was told of: to find one of them dead is news, unlike a guess."""

import re
from collections.abc import Mapping
from typing import Any

_MOST_CHARACTERS = 50_000
"""Of one text."""
_MOST = 10_000
_TOKEN = re.compile(r"[^\s\"'<>()\[\]{},|`]{4,500}")
_TELLING = re.compile(r"[./_@#\d]")
"""https://a.test/x, data/2024.csv, user_7, JIRA-12; no plain word."""


class Leads:
    """Those of the task and of results so far, `_MOST` at most."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def take(self, text: str) -> None:
        """Take what a text names."""
        for token in _TOKEN.findall(text[:_MOST_CHARACTERS]):
            if len(self._known) >= _MOST:
                return
            if _TELLING.search(token):
                self._known.add(token.rstrip(".;:!?"))

    def are_followed_by(self, arguments: Mapping[str, Any]) -> bool:
        """Say whether one of the arguments is among them."""
        return any(isinstance(one, str) and one.strip() in self._known for one in arguments.values())

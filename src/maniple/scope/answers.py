"""Questions of steps to the user, as a run asks them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class UserAnswer:
    """The answer to a question."""

    value: Any
    is_live: bool = False
    """Whether it was given while the run worked. LangGraph has no record of such an answer."""


class Asker(Protocol):
    """Asks the user for one step, while other steps go on."""

    async def ask(self, payload: Mapping[str, Any], key: str) -> UserAnswer:
        """Return the answer; raises `GraphInterrupt` once no other step runs."""
        ...

"""A value of JSON as a tree that can be folded, no larger than a person looks at."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from maniple.run_page.lenient import parsed, text

DEEPEST = 12
MOST_CHILDREN = 200
MOST_NODES = 2_000
LONGEST_JSON = 1_000_000
"""Characters."""


@dataclass(slots=True)
class Node:
    """A value under its name or place; one of several has children."""

    label: str
    shown: str
    children: list["Node"] = field(default_factory=list)


def tree_of(answer: str) -> Node | None:
    """Return the object or the list that an answer consists of, in a fence or not; None for other words."""
    words = answer.strip()
    if words.startswith("```") and words.endswith("```"):
        words = words.strip("`").strip().removeprefix("json").strip()
    if not words.startswith(("{", "[")) or len(words) > LONGEST_JSON:
        return None
    value = parsed(words)
    return _Tree().node("", value, 0) if isinstance(value, dict | list) else None


class _Tree:
    def __init__(self) -> None:
        self._left = MOST_NODES

    def node(self, label: str, value: Any, depth: int) -> Node:
        self._left -= 1
        if isinstance(value, dict):
            return self._many(label, "{}", value.items(), len(value), depth)
        if isinstance(value, list):
            return self._many(label, "[]", enumerate(value), len(value), depth)
        return Node(label, text(json.dumps(value, ensure_ascii=False)))

    def _many(self, label: str, kind: str, items: Iterable[tuple[Any, Any]], length: int, depth: int) -> Node:
        node = Node(label, f"{kind[0]}{length}{kind[1]}")
        for place, (name, one) in enumerate(items):
            if depth == DEEPEST or place == MOST_CHILDREN or self._left <= 0:
                node.children.append(Node("…", f"{length - place} more"))
                break
            node.children.append(
                self.node(text(name, 200) if isinstance(name, str) else str(name), one, depth + 1)
            )
        return node

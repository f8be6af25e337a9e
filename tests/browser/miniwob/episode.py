"""One episode of a task, played with the browser's actions and the state alone."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from maniple.browser import Page


@dataclass(frozen=True, slots=True)
class Control:
    """A control as listed in the state."""

    index: int
    opening: str
    """The text in angle brackets: the role and the details."""
    name: str
    line: int

    @property
    def role(self) -> str:
        return self.opening.partition(" ")[0]

    def detail(self, key: str) -> str:
        """A detail, such as the `value`; "" without one."""
        found = re.search(rf'\b{key}=(?:"((?:[^"\\]|\\.)*)"|(\S+))', self.opening)
        return (found[1] or found[2] or "") if found else ""


@dataclass
class Episode:
    """What is seen of a task, and what can be done in it."""

    page: Page
    text: str = ""
    controls: list[Control] = field(default_factory=list)

    async def see(self) -> str:
        """Look; what the state says."""
        self.text = (await self.page.observe(screenshot=False)).interactive_elements
        self.controls = list(_controls(self.text))
        return self.text

    @property
    def goal(self) -> str:
        """The task, which is the first line of each page."""
        return self.text.splitlines()[0]

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def quoted(self) -> list[str]:
        """The quoted texts of the goal."""
        return re.findall(r'"([^"]*)"', self.goal)

    def of(self, name: str, role: str = "") -> Control:
        """The first control of this name, and of this role if one is given."""
        return next(self.all(name, role))

    def all(self, name: str = "", role: str = "") -> Iterator[Control]:
        """The controls of this name and of this role, as far as given."""
        for control in self.controls:
            if name in ("", control.name) and role in ("", control.role):
                yield control

    def has(self, name: str, role: str = "") -> bool:
        return next(self.all(name, role), None) is not None

    async def do(self, action: str, **parameters: Any) -> str:
        """Do one thing, and look."""
        result = await self.page.act({"action": action, **parameters})
        await self.see()
        return result.text

    async def click(self, target: Control | str) -> None:
        control = self.of(target) if isinstance(target, str) else target
        await self.do("click_element", index=control.index)

    async def write(self, target: Control, text: str) -> None:
        await self.do("input_text", index=target.index, text=text)

    async def keys(self, *keys: str) -> None:
        for key in keys:
            await self.do("send_keys", keys=key)

    async def submit(self) -> None:
        await self.click(self.of("Submit", "button"))


def _controls(text: str) -> Iterator[Control]:
    for number, line in enumerate(text.splitlines()):
        for found in re.finditer(r'\[(\d+)\]<((?:[^<>"]|"(?:[^"\\]|\\.)*")*)>(.*?)</[\w-]+>', line):
            yield Control(int(found[1]), found[2], found[3], number)

"""Tools that are not ours: those that the settings name, and those that installed packages offer.

An entry point of the group `maniple.tools` is loaded only when a role names it, so that a package which is
merely installed changes nothing.
"""

import difflib
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from maniple.config import Settings
from maniple.config.run_settings import TOOLS
from maniple.config.sources import Keys
from maniple.errors import ConfigError
from maniple.tools.third_party_tools import in_thread, shield_from_exit
from maniple.types import Worker

GROUP = "maniple.tools"


def own_tools(settings: Settings, present: Iterable[BaseTool]) -> Mapping[Worker, Sequence[BaseTool]]:
    """Return who is given which tools beside what the built-in workers have anyway; imports, so it blocks.

    `present` are the built-in tools that are there: a role is without those that are absent on this machine.
    Raises `ConfigError` with file, line and key for what cannot be loaded and for a name that is no tool's.
    """
    known = _Known(settings, {tool.name: tool for tool in present})
    given: dict[Worker, dict[str, BaseTool]] = {role.name: {} for role in settings.team.roles}
    for place, entry in enumerate(settings.tools):
        tool = known.add(entry.name, entry.use, ("tools", place), lambda use=entry.use: known.imported(use))
        for worker in entry.roles:
            given.setdefault(worker, {})[tool.name] = tool
    for number, role in enumerate(settings.team.roles):
        for place, name in enumerate(role.tools):
            if tool := known.named(name, ("team", "roles", number, "tools", place)):
                given[role.name][name] = tool
    return {worker: list(tools.values()) for worker, tools in given.items()}


def as_tool(found: Any, name: str) -> BaseTool:
    """Return a function or a LangChain tool as the tool `name`.

    A function that is not async runs in a thread. Raises `TypeError` or `ValueError` with what it lacks.
    """
    if isinstance(found, StructuredTool) and (run := _awaitable(found)):
        return found.model_copy(update={"name": name, "coroutine": run})
    if isinstance(found, BaseTool):
        return found if found.name == name else found.model_copy(update={"name": name})
    if inspect.iscoroutinefunction(found):
        return StructuredTool.from_function(coroutine=shield_from_exit(found), name=name)
    if inspect.isfunction(found):
        return StructuredTool.from_function(coroutine=in_thread(found), name=name)
    raise TypeError("it is neither a function nor a LangChain tool")


def _awaitable(tool: StructuredTool) -> Callable[..., Awaitable[Any]] | None:
    if tool.coroutine is not None:
        return shield_from_exit(tool.coroutine)
    return in_thread(tool.func) if tool.func is not None else None


class _Known:
    """The tools that a name can mean."""

    def __init__(self, settings: Settings, present: dict[str, BaseTool]) -> None:
        self._origin = settings.origin
        self._tools = present

    def named(self, name: str, keys: Keys) -> BaseTool | None:
        """Return the tool of this name; `None` for a built-in one that is absent."""
        if name in self._tools or name in TOOLS:
            return self._tools.get(name)
        offered = {point.name: point for point in entry_points(group=GROUP)}
        if name not in offered:
            near = difflib.get_close_matches(name, {*TOOLS, *self._tools, *offered}, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise self._mistake(keys, f"there is no tool called {name}{hint}")
        return self.add(name, offered[name].value, keys, offered[name].load)

    def add(self, name: str, source: str, keys: Keys, load: Callable[[], Any]) -> BaseTool:
        """Load a tool and keep it under its name, which no other one may have."""
        if name in TOOLS or name in self._tools:
            raise self._mistake(keys, f"there is another tool called {name}; rename this one")
        try:
            self._tools[name] = tool = as_tool(load(), name)
        except (Exception, SystemExit) as error:  # what is not ours may fail in any way
            words = f"{source} cannot be used as a tool: {type(error).__name__}: {error}"
            raise self._mistake(keys, words) from error
        return tool

    def imported(self, use: str) -> Any:
        """Return what `module:attribute` names; the module may lie beside conf.yaml."""
        module, _, attribute = use.partition(":")
        folder = str(self._origin.folder or Path.cwd())
        if folder not in sys.path:
            # At its end: what lies there is not to stand before what is installed.
            sys.path.append(folder)
        return getattr(importlib.import_module(module), attribute)

    def _mistake(self, keys: Keys, words: str) -> ConfigError:
        key = ".".join(map(str, keys))
        return ConfigError(f"The settings have mistakes:\n  {self._origin.place_of(keys)}: {key}: {words}")

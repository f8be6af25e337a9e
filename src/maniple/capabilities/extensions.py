"""The tools of the registry, and those that users and packages add, with skills and packages' capabilities.

An entry point of the groups `maniple.tools` and `maniple.capabilities` is loaded only when the settings name
it, so that a package which is merely installed changes nothing.
"""

import asyncio
import difflib
import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.tools import BaseTool, StructuredTool

from maniple.agents.browsing import BrowsingResources
from maniple.agents.offers import Offer
from maniple.capabilities.base import Capability, CapabilityContext
from maniple.capabilities.browsing import browser_use_of
from maniple.config import Settings
from maniple.config.sources import Keys
from maniple.config.web_settings import READER_GROUP
from maniple.errors import ConfigError
from maniple.prompts import render
from maniple.reading.loaders import DocumentLoader, DocumentLoaders
from maniple.third_party import in_thread, shield_from_exit
from maniple.tools.code import CodeEnvironment
from maniple.tools.interaction import terminate_tool
from maniple.tools.registry import load_tools
from maniple.tools.skills import Skill, find_skills, skill_tool
from maniple.types import GENERAL, WORKERS, Worker
from maniple.workspace import Workspaces

TOOL_GROUP = "maniple.tools"
CAPABILITY_GROUP = "maniple.capabilities"


@dataclass(frozen=True, slots=True)
class BuiltInTools:
    """The tools of the registry whose services are available, by name."""

    tools: Mapping[str, BaseTool]


class BuiltInToolsCapability(Capability):
    """The tools that `define_tool` registers, made with the services of the capabilities before this one."""

    name: ClassVar = "built-in tools"

    async def open(self, context: CapabilityContext) -> Offer:
        registry = await asyncio.to_thread(load_tools)
        tools = registry.build(context.services)

        def tools_by_role(*, is_core: bool) -> dict[Worker, list[BaseTool]]:
            named = {worker: registry.of_role(worker, is_core=is_core) for worker in WORKERS}
            return {
                worker: given
                for worker, names in named.items()
                if (given := [tools[name] for name in names if name in tools])
            }

        core = tools_by_role(is_core=True)
        if context.service(CodeEnvironment) is None:
            # With any core tool, the coder would try to run code.
            core.pop("coder", None)
        return Offer(
            core,
            extra_tools=tools_by_role(is_core=False),
            services={BuiltInTools: BuiltInTools(tools)},
        )


class OwnToolsCapability(Capability):
    """The tools that the settings name, and those that the team's own roles have."""

    name: ClassVar = "own tools"

    async def open(self, context: CapabilityContext) -> Offer:
        present = _built_in_tools(context)
        return Offer(extra_tools=await asyncio.to_thread(own_tools, context.settings, present))


class SkillsCapability(Capability):
    """The skills in the folders that the settings name."""

    name: ClassVar = "skills"

    async def open(self, context: CapabilityContext) -> Offer:
        return await asyncio.to_thread(skills_offer, context.settings, context.service(Workspaces))


_LEFT_OUT = frozenset({"browser", "move_file", "copy_file", "delete_file", "create_directory"})
"""The tools that the general agent has others for: `browser_use`, and `file_operations` for several files."""


class GeneralCapability(Capability):
    """The tools of the agent that works alone: all that do what no other of them does."""

    name: ClassVar = "general"

    async def open(self, context: CapabilityContext) -> Offer:
        if GENERAL not in context.settings.team.members:
            return Offer()
        own = {tool.name: tool for tool in _built_in_tools(context) if tool.name not in _LEFT_OUT}
        return Offer({GENERAL: [*own.values(), terminate_tool()]})


def _built_in_tools(context: CapabilityContext) -> list[BaseTool]:
    tools = [tool for worker in WORKERS for tool in context.tools_of(worker)]
    defined = context.require(BuiltInTools).tools.values()
    return [*tools, *defined, *browser_use_of(context.service(BrowsingResources))]


def load_capabilities(settings: Settings) -> list[Capability]:
    """Return the capabilities of packages that `settings.capabilities` names; imports, so it blocks.

    Raises `ConfigError` with file, line and key for a name that no package offers and for one that cannot be
    loaded.
    """
    offered = {point.name: point for point in entry_points(group=CAPABILITY_GROUP)}
    return [
        _capability(settings, offered, name, ("capabilities", place))
        for place, name in enumerate(settings.capabilities)
    ]


def _capability(settings: Settings, offered: Mapping[str, Any], name: str, keys: Keys) -> Capability:
    if name not in offered:
        near = difflib.get_close_matches(name, offered, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; install the package that provides it"
        raise settings.origin.error([(keys, f"no installed package offers the capability {name}{hint}")])
    try:
        capability = offered[name].load()()
    except (Exception, SystemExit) as error:  # a third-party package may raise anything
        text = f"{offered[name].value} cannot be used as a capability: {type(error).__name__}: {error}"
        raise settings.origin.error([(keys, text)]) from error
    if not isinstance(capability, Capability):
        text = f"{offered[name].value} is not a subclass of Capability"
        raise settings.origin.error([(keys, text)])
    return capability


def document_loaders(settings: Settings) -> DocumentLoaders:
    """Return the loaders of documents that `settings.readers` names; they are not imported. Blocks on disk.

    Raises `ConfigError` with file, line and key for a name that no package offers.
    """
    offered = {point.name: point.value for point in entry_points(group=READER_GROUP)}
    found: dict[str, DocumentLoader] = {}
    for name, reader in settings.readers.items():
        use = reader.use if ":" in reader.use else offered.get(reader.use)
        if use is None:
            text = f"no installed package offers the reader {reader.use}; write module:Class, or install it"
            raise settings.origin.error([(("readers", name), text)])
        found[name] = DocumentLoader(use, reader.options)
    return DocumentLoaders(found)


def skills_offer(settings: Settings, workspaces: Workspaces | None) -> Offer:
    """Return the skills of the folders that `settings` name; blocks on disk, raises `ConfigError`."""
    given: dict[Worker, dict[str, Skill]] = {}
    notices: list[str] = []
    for place, entry in enumerate(settings.skills):
        found = find_skills(entry.folder)
        if not found:
            notices.append(f"{entry.folder} holds no skills: each is a folder in it that holds a SKILL.md.")
        for worker in entry.roles:
            known = given.setdefault(worker, {})
            if twice := [skill.name for skill in found if skill.name in known]:
                at = settings.origin.place_of(("skills", place))
                raise ConfigError(f"{at}: skills.{place}: {worker} has another skill called {twice[0]}.")
            known.update((skill.name, skill) for skill in found)
    present = {worker: list(skills.values()) for worker, skills in given.items() if skills}
    return Offer(
        extra_tools={worker: [skill_tool(skills, workspaces)] for worker, skills in present.items()},
        instructions={worker: render("skills", skills=skills) for worker, skills in present.items()},
        notices=tuple(notices),
    )


def own_tools(settings: Settings, present: Iterable[BaseTool]) -> Mapping[Worker, Sequence[BaseTool]]:
    """Return the additional tools of each worker; blocks, because it imports modules.

    `present` are the available built-in tools; a role works without those that are absent on this machine.
    Raises `ConfigError` with file, line and key for a tool that cannot be loaded, or does not exist.
    """
    known = _KnownTools(settings, {tool.name: tool for tool in present})
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

    A function that is not async runs in a thread. Raises `TypeError` or `ValueError` if it cannot be one.
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


class _KnownTools:
    """Finds the tools that the settings name."""

    def __init__(self, settings: Settings, present: dict[str, BaseTool]) -> None:
        self._settings = settings
        self._tools = present
        self._built_in = load_tools().names

    def named(self, name: str, keys: Keys) -> BaseTool | None:
        """Return the tool of this name; `None` for a built-in one that is absent."""
        if name in self._tools or name in self._built_in:
            return self._tools.get(name)
        offered = {point.name: point for point in entry_points(group=TOOL_GROUP)}
        if name not in offered:
            near = difflib.get_close_matches(name, {*self._built_in, *self._tools, *offered}, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise self._mistake(keys, f"there is no tool called {name}{hint}")
        return self.add(name, offered[name].value, keys, offered[name].load)

    def add(self, name: str, source: str, keys: Keys, load: Callable[[], Any]) -> BaseTool:
        """Load a tool and register its name, which must be unique."""
        if name in self._built_in or name in self._tools:
            raise self._mistake(keys, f"there is another tool called {name}; rename this one")
        try:
            self._tools[name] = tool = as_tool(load(), name)
        except (Exception, SystemExit) as error:  # third-party code may raise anything
            words = f"{source} cannot be used as a tool: {type(error).__name__}: {error}"
            raise self._mistake(keys, words) from error
        return tool

    def imported(self, use: str) -> Any:
        """Return the object at `module:attribute`; the module may be beside a trusted conf.yaml."""
        module, _, attribute = use.partition(":")
        origin = self._settings.origin
        folder = str(origin.folder or Path.cwd())
        if origin.is_trusted and folder not in sys.path:
            # At the end of the path: files there must not shadow installed packages.
            sys.path.append(folder)
        return getattr(importlib.import_module(module), attribute)

    def _mistake(self, keys: Keys, text: str) -> ConfigError:
        return self._settings.origin.error([(keys, text)])

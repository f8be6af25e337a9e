"""The registry of built-in tools: name, description, workers, parameters and code of each in one place.

A tool is a coroutine function in a module of `maniple.tools`, decorated with `define_tool`:

    @define_tool("count_words", "Count the words of a file.", roles=("coder",), idempotent=True)
    async def count_words(workspaces: Workspaces, /, path: str) -> str:
        ...

The parameters before `/` are services: capabilities offer them (`Offer.services`), and the registry passes
each by its type. `Service | None` accepts that a service is absent; without any other the tool is not built.
The model sees the parameters after `/`, and only those.

A tool that needs more than services, such as one that is made for each worker, has a factory decorated with
`tool_factory`. The capability that calls the factory offers the tool; the registry only knows its name.
"""

import difflib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from types import NoneType
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast, get_args, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

import maniple.tools
from maniple.config import Settings
from maniple.config.mcp_settings import MCP_TOOL_NAME, is_of_server
from maniple.types import WORKERS, Worker

_ORDER = ("web", "code", "files", "text_editor")
"""The modules in the order in which models are shown their tools; other modules follow by name."""
_OPTIONAL = "mcp"
"""Its tools are defined by servers; importing it takes an optional package."""

FILE_WRITER = "write_file"
"""The tool whose approval holds for each call that writes files; see `writes_files` of a tool's metadata."""

Arguments = Mapping[str, Any]
Services = Mapping[type[Any], Any]
"""Objects by their type, as in `Offer.services`."""
ToolFunction = Callable[..., Awaitable[Any]]
Description = str | Callable[..., str]
"""A text for the model, or a function of services, passed by type, that returns it."""
_Function = TypeVar("_Function", bound=ToolFunction)
_Factory = TypeVar("_Factory", bound=Callable[..., Any])


class ToolMetadata(TypedDict, total=False):
    """What holds for the calls of a tool; docs/architecture.md explains each key."""

    timeout_seconds: float | None
    is_terminal: bool
    idempotent: bool
    mode: Literal["ordered", "parallel"]
    approval: bool
    includes: Mapping[str, str | tuple[str, ...]]
    writes_files: bool | Mapping[str, tuple[str, ...]]
    only_reads: bool
    marks_effect: bool
    said_by: str
    max_calls_per_run: int
    beyond: str


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What `define_tool` declares."""

    name: str
    function: ToolFunction
    description: Description
    roles: tuple[Worker, ...]
    """The built-in workers that get the tool. The general agent gets the tools of all."""
    is_core: bool
    """Whether these workers do their own work with it; see `Offer.tools_by_role`."""
    args_schema: type[BaseModel] | None
    response_format: Literal["content", "content_and_artifact"]
    prepare: Callable[..., Awaitable[None]] | None
    """See `PreparedTool`; its parameters are services."""
    metadata: ToolMetadata

    def build(self, services: Services) -> BaseTool | None:
        """Return the tool; None when `services` lack one that it needs."""
        given = _find_services(self.function, services)
        text = _describe(self.description, services)
        if given is None or text is None:
            return None
        tool = StructuredTool.from_function(
            coroutine=_bind(self.function, given),
            name=self.name,
            description=text,
            args_schema=self.args_schema or _infer_schema(self.name, self.function),
            response_format=self.response_format,
            metadata={**self.metadata} or None,
        )
        services_of = _find_services(self.prepare, services) if self.prepare else None
        if self.prepare is None or services_of is None:
            return tool
        return PreparedTool(**dict(tool), prepare=partial(self.prepare, *services_of))


class ToolRegistry:
    """The built-in tools."""

    def __init__(self) -> None:
        self._definitions: dict[str, ToolSpec] = {}
        self._factories: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The sorted names of all built-in tools, also of those that are absent on this machine."""
        return tuple(sorted({*self._definitions, *self._factories}))

    @property
    def definitions(self) -> list[ToolSpec]:
        """The defined tools in the order in which models are shown them."""
        return sorted(self._definitions.values(), key=lambda one: _rank(one.function.__module__))

    def __getitem__(self, name: str) -> ToolSpec:
        return self._definitions[name]

    def of_role(self, worker: Worker, *, is_core: bool = True) -> tuple[str, ...]:
        """Return the names of the tools that a built-in worker gets, where their services are there."""
        return tuple(one.name for one in self.definitions if worker in one.roles and one.is_core == is_core)

    def build(self, services: Services) -> dict[str, BaseTool]:
        """Return the tools whose services are there, by name."""
        built = {one.name: one.build(services) for one in self.definitions}
        return {name: tool for name, tool in built.items() if tool is not None}

    def add(self, definition: ToolSpec) -> None:
        """Register a tool.

        Raises:
            ValueError: the name is taken or reserved for MCP servers, or a role is not a built-in worker.
            TypeError: the function is not async, or a service has no annotation.
        """
        if definition.name in self.names:
            raise ValueError(f"The tool {definition.name!r} is registered already.")
        self._check_name(definition.name)
        if unknown := set(definition.roles) - set(WORKERS):
            raise ValueError(
                f"{definition.name!r} names {', '.join(unknown)}; there are {', '.join(WORKERS)}."
            )
        if not inspect.iscoroutinefunction(definition.function):
            raise TypeError(f"The function of {definition.name!r} must be async.")
        for function in (definition.function, definition.description, definition.prepare):
            if callable(function):
                _service_types(function)  # raises for a missing annotation
        self._definitions[definition.name] = definition

    def add_factory(self, name: str) -> None:
        """Register the name of a tool that a factory makes. Variants of one tool share it.

        Raises:
            ValueError: the name is that of a defined tool, or reserved for MCP servers.
        """
        if name in self._definitions:
            raise ValueError(f"The tool {name!r} is registered already.")
        self._check_name(name)
        self._factories.add(name)

    def remove(self, name: str) -> None:
        """Forget a tool."""
        del self._definitions[name]

    def _check_name(self, name: str) -> None:
        if is_of_server(name):
            raise ValueError(f"{name!r}: SERVER__TOOL is how the tools of MCP servers are called.")


TOOLS = ToolRegistry()
"""The tools of the modules that were imported. `load_tools` imports all of them first."""


@cache
def load_tools() -> ToolRegistry:
    """Import all modules of `maniple.tools` and return the registry. The first call blocks on disk."""
    import_tools(maniple.tools.__path__)
    return TOOLS


def import_tools(path: Iterable[str]) -> None:
    """Import all modules in the package's folders `path`, which registers their tools."""
    for module in pkgutil.iter_modules(path):
        if module.name != _OPTIONAL:
            import_module(f"{maniple.tools.__name__}.{module.name}")


def define_tool(  # noqa: PLR0913 - what a tool consists of
    name: str,
    description: Description,
    *,
    roles: Sequence[Worker],
    is_core: bool = False,
    args_schema: type[BaseModel] | None = None,
    response_format: Literal["content", "content_and_artifact"] = "content",
    prepare: Callable[..., Awaitable[None]] | None = None,
    **metadata: Unpack[ToolMetadata],
) -> Callable[[_Function], _Function]:
    """Register a coroutine function as a tool of the workers `roles`.

    The JSON schema follows from its parameters, or from `args_schema`. With `content_and_artifact` it returns
    the text for the model and the message's artifact. The function raises `ToolFailure` for what the model
    can act on. `prepare` gets services, too; see `PreparedTool`.
    """

    def register(function: _Function) -> _Function:
        TOOLS.add(
            ToolSpec(
                name,
                function,
                description,
                tuple(roles),
                is_core,
                args_schema,
                response_format,
                prepare,
                metadata,
            )
        )
        return function

    return register


def tool_factory(name: str) -> Callable[[_Factory], _Factory]:
    """Register the name of the tool that the decorated function makes."""

    def register(factory: _Factory) -> _Factory:
        TOOLS.add_factory(name)
        return factory

    return register


def check_approval(settings: Settings, offered: Iterable[str] | None = None) -> None:
    """Raise `ConfigError` where `runs.approval` names no tool: it would run without being approved.

    Tools of MCP servers and of the user are checked by their names in the settings. `offered` are the names
    of the tools of the packages in `settings.capabilities`; with such a package, nothing is refused until
    they are known. Blocks on disk.
    """
    if not settings.runs.approval or (settings.capabilities and offered is None):
        return
    known = (*load_tools().names, *settings.own_tool_names, *(offered or ()))
    unknown = [
        (("runs", "approval", place), _unknown_tool_text(name, known))
        for place, name in enumerate(settings.runs.approval)
        if name not in known and not MCP_TOOL_NAME.fullmatch(name)
    ]
    if unknown:
        raise settings.origin.error(unknown)


def _unknown_tool_text(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no tool has this name, so it would run without being approved; {hint}"


def _rank(module: str) -> tuple[int, str]:
    """Return the place of a module's tools, whichever module was imported first."""
    name = module.rpartition(".")[2]
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER)), name


def _service_types(function: Callable[..., Any]) -> dict[str, tuple[type[Any], bool]]:
    """Return the type of each service of `function`, and whether it may be absent."""
    hints = get_type_hints(function)
    names = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    if unannotated := [name for name in names if name not in hints]:
        raise TypeError(f"{function.__qualname__}: annotate {unannotated[0]} with the type of its service.")
    return {name: _service_type(hints[name]) for name in names}


def _service_type(annotation: Any) -> tuple[type[Any], bool]:
    options = [one for one in get_args(annotation) if one is not NoneType]
    is_optional = NoneType in get_args(annotation)
    return (options[0] if is_optional else annotation), is_optional


def _find_services(function: Callable[..., Any], services: Services) -> list[Any] | None:
    """Return the services of `function` in its parameters' order; None when one that it needs is absent."""
    types = _service_types(function).values()
    if any(kind not in services and not is_optional for kind, is_optional in types):
        return None
    return [services.get(kind) for kind, _ in types]


def _describe(description: Description, services: Services) -> str | None:
    if isinstance(description, str):
        return description
    given = _find_services(description, services)
    return None if given is None else description(*given)


@cache
def _infer_schema(name: str, function: ToolFunction) -> type[BaseModel]:
    """Return the model of the tool's parameters. It takes some milliseconds, and all teams can share it."""
    inferred = StructuredTool.from_function(coroutine=_bind(function, ()), name=name, description=name)
    return cast("type[BaseModel]", inferred.args_schema)


def _bind(function: ToolFunction, given: Sequence[Any]) -> ToolFunction:
    """Return `function` with its services; its signature has only the model's parameters."""
    hidden = _service_types(function)

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await function(*given, *args, **kwargs)

    signature = inspect.signature(function)
    shown = [one for name, one in signature.parameters.items() if name not in hidden]
    call.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    hints = get_type_hints(function, include_extras=True)
    call.__annotations__ = {name: hint for name, hint in hints.items() if name not in hidden}
    # Not its docstring, which is for engineers: LangChain would put it into the schema.
    call.__name__, call.__module__ = function.__name__, function.__module__
    return call


class PreparedTool(StructuredTool):
    """A tool that begins its slow part, such as a process, while the model still writes the call's arguments.

    The call may never come, because it is refused or the answer breaks off.
    """

    prepare: Callable[[], Awaitable[None]] = Field(exclude=True)


class RedactedArgsTool(StructuredTool):
    """A tool whose callbacks, and therefore events and traces, get only redacted arguments."""

    redact: Callable[[Arguments], dict[str, Any]] = Field(exclude=True)

    def _filter_injected_args(self, tool_input: dict[str, Any]) -> dict[str, Any]:
        # The only place where LangChain separates the arguments for callbacks from those for the tool.
        return self.redact(super()._filter_injected_args(tool_input))


def redact_arguments(tool: BaseTool | None, arguments: Arguments) -> dict[str, Any]:
    """Return the arguments of a call for events and records."""
    return tool.redact(arguments) if isinstance(tool, RedactedArgsTool) else dict(arguments)

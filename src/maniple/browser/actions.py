"""The registry of browser actions: name, parameters, prompt line, result text and code of each in one place.

An action is a coroutine function in a module of `maniple.browser.drivers.actions`, decorated with `action`:

    class HoverAction(Action):
        index: ElementIndex

    @action("hover", HoverAction, kind="move", line="element", prompt="hover (index)", done="Hovered {index}")
    async def hover(window: BrowserWindow, action: HoverAction, services: PageServices) -> ActionResult:
        ...

The tool's schema and description, validation, the modes that offer the action and its result text follow from
the declaration. Source of names and texts: OpenManus's browser tool; `docs/browser.md` lists the actions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from maniple.browser.arguments import complete_url
from maniple.errors import BrowserError

ActionName = str
"""A name in the registry."""
ActionKind = Literal["move", "input", "search", "extraction", "picture"]
"""Decides which modes offer an action; `maniple.agents.browsing.view` maps modes to kinds."""

MASK = "********"
"""Replaces text that is typed into a password field; its length does not reveal the secret's length."""

_PARAMETER_ORDER = (*("url", "index", "text", "scroll_amount", "tab_id", "query", "goal", "keys", "seconds"),)
"""The order in the tool's schema; other parameters follow in the order of their registration."""
_LINE_ORDER = ("tabs", "search", "element", "dropdown", "keyboard", "scrolling")
"""The order of the lines in the tool's description; other lines follow."""
_FILLERS = frozenset(("", "-1", "0", "n/a", "nan", "none", "null", "undefined"))
"""What models write for a parameter that they do not use."""
_SUBJECTS = {"url": "URL is", "tab_id": "Tab ID is", "keys": "Keys are"}


class Action(BaseModel):
    """One thing to do in the browser. Each action declares its parameters in a subclass.

    An instance of this class itself is a request that `parse_action` has not validated yet.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    may_be_empty: ClassVar[frozenset[str]] = frozenset()
    """Required parameters that accept ""; others treat it as missing."""

    action: ActionName


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action that succeeded; one that fails raises `BrowserError`."""

    text: str
    """The contract's text, such as `Clicked element at index 3 - Downloaded file to report.pdf`."""
    changed: bool = True
    """Whether the page may have changed, so that earlier indexes must not be used."""
    downloads: tuple[Path, ...] = ()


def _parse_number(value: Any) -> Any:
    """Accept numbers that models write as text, and an index with its brackets."""
    return value.strip().strip("[]*") if isinstance(value, str) else value


_Number = Annotated[int, BeforeValidator(_parse_number)]
# The description of a parameter precedes the names of the actions that use it.
PageUrl = Annotated[str, AfterValidator(complete_url), Field(description="A full address, for")]
ElementIndex = Annotated[_Number, Field(ge=0, description="Of the element, for")]
Text = Annotated[str, Field(description="For")]
ScrollPixels = Annotated[_Number, Field(ge=0, description="Pixels, for")]
TabId = Annotated[_Number, Field(description="For")]
Query = Annotated[str, Field(description="For")]
Goal = Annotated[str, Field(description="What is wanted of the page, for")]
Keys = Annotated[str, Field(description="For")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False, description="3 where it is left out, for")]


ActionFunction = Callable[..., Awaitable[ActionResult]]
"""Called with the window, the parsed action and the `PageServices`.

Raises `ToolFailure` (a whole sentence or part of one) or Playwright's `Error`.
"""
_Function = TypeVar("_Function", bound=ActionFunction)


@dataclass(frozen=True, slots=True)
class ActionDefinition:
    """What `@action` declares."""

    name: ActionName
    parameters: type[Action]
    run: ActionFunction
    kind: ActionKind
    line: str
    """The line of the tool's description that it shares with related actions."""
    prompt: str
    """Its part of that line."""
    done: str
    """The text of success as a format string over the parameters."""
    types_into: Literal["element", "focus"] | None
    """Where `text` or `keys` go; they are masked if that may be a password field."""
    has_own_limits: bool
    """Whether it is exempt from the time limit of an action."""

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters without which it fails."""
        return tuple(
            name
            for name, field in self.parameters.model_fields.items()
            if name != "action" and field.is_required()
        )

    @property
    def optional(self) -> tuple[str, ...]:
        """The parameters with a default."""
        return tuple(name for name, field in self.parameters.model_fields.items() if not field.is_required())

    def schema_of(self, parameter: str) -> Mapping[str, Any]:
        """Return JSON type and description prefix of a parameter."""
        schema = _properties(self.parameters)[parameter]
        return schema.get("anyOf", [schema])[0]


class ActionRegistry:
    """The known actions, in the order of their registration."""

    def __init__(self) -> None:
        self._definitions: dict[ActionName, ActionDefinition] = {}

    @property
    def names(self) -> tuple[ActionName, ...]:
        """The names of all actions."""
        return tuple(self._definitions)

    def get(self, name: Any) -> ActionDefinition | None:
        """Return the definition of an action; None for an unknown name."""
        return self._definitions.get(name) if isinstance(name, str) else None

    def __getitem__(self, name: ActionName) -> ActionDefinition:
        return self._definitions[name]

    def add(self, definition: ActionDefinition) -> None:
        """Register an action.

        Raises:
            ValueError: the name is taken, or another action has a parameter of this name and another type.
        """
        if definition.name in self._definitions:
            raise ValueError(f"The browser action {definition.name!r} is registered already.")
        for name in (*definition.required, *definition.optional):
            kind = definition.schema_of(name)["type"]
            if any(one.schema_of(name)["type"] != kind for one in self._using(name)):
                raise ValueError(f"The parameter {name!r} of {definition.name!r} has another type elsewhere.")
        self._definitions[definition.name] = definition

    def remove(self, name: ActionName) -> None:
        """Forget an action."""
        del self._definitions[name]

    def of_kinds(self, *kinds: ActionKind) -> tuple[ActionName, ...]:
        """Return the actions of some kinds: those of the first kind, then those of the next."""
        return tuple(one.name for kind in kinds for one in self._definitions.values() if one.kind == kind)

    def prompt_lines(self, offered: Sequence[ActionName]) -> list[str]:
        """Return the lines that describe the offered actions to a model."""
        lines = (
            ", ".join(
                one.prompt for one in self._definitions.values() if one.line == line and one.name in offered
            )
            for line in dict.fromkeys((*_LINE_ORDER, *(one.line for one in self._definitions.values())))
        )
        return [line for line in lines if line]

    def schema(self, offered: Sequence[ActionName]) -> dict[str, Any]:
        """Return the JSON schema of the arguments of the offered actions."""
        declared = [name for one in self._definitions.values() for name in (*one.required, *one.optional)]
        parameters = {
            name: parameter
            for name in dict.fromkeys((*_PARAMETER_ORDER, *declared))
            if (parameter := self._parameter_schema(name, offered))
        }
        return {
            "type": "object",
            "properties": {"action": {"type": "string", "enum": list(offered)}, **parameters},
            "required": ["action"],
        }

    def parse(self, given: "Mapping[str, Any] | Action") -> Action:
        """Return the action that `given` names, validated.

        Raises:
            BrowserError: the action is unknown, or a parameter is missing or invalid; for the model.
        """
        if isinstance(given, Action):
            if type(given) is not Action:
                return given
            given = given.model_dump()
        definition = self.get(given.get("action"))
        if definition is None:
            raise BrowserError(f"Unknown action: {given.get('action')}")
        name, required = definition.name, definition.required
        if missing := [key for key in required if _is_missing(definition, key, given.get(key))]:
            raise BrowserError(_missing_text(name, required, missing[0]))
        if unknown := [key for key in given if self._is_unknown(definition, key, given[key])]:
            raise BrowserError(failure_text(name, _unknown_text(definition, unknown)))
        # Models write "" for parameters that they leave out.
        optional = [key for key in definition.optional if given.get(key) not in (None, "")]
        values = {key: given[key] for key in (*required, *optional)}
        try:
            return definition.parameters.model_validate({"action": name, **values})
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BrowserError(failure_text(name, f"{where}: {first['msg']}")) from error

    def _is_unknown(self, definition: ActionDefinition, key: str, value: Any) -> bool:
        """Return whether an action would ignore a parameter in silence.

        Models fill in the parameters of other actions with values that mean nothing, or with their defaults.
        """
        if value in (None, "") or key in ("action", *definition.required, *definition.optional):
            return False
        users = self._using(key)
        defaults = [one.parameters.model_fields[key].default for one in users]
        return not users or (_is_meant(value) and value not in defaults)

    def _using(self, parameter: str) -> list[ActionDefinition]:
        """Return the actions with a parameter, those that require it first."""
        users = list(self._definitions.values())
        required = [one for one in users if parameter in one.required]
        return required + [one for one in users if parameter in one.optional]

    def _parameter_schema(self, name: str, offered: Sequence[ActionName]) -> dict[str, Any] | None:
        users = [one for one in self._using(name) if one.name in offered]
        if not users:
            return None
        schema = users[0].schema_of(name)
        names = ", ".join(one.name for one in users)
        return {"type": schema["type"], "description": f"{schema.get('description', 'For')} {names}."}


ACTIONS = ActionRegistry()
"""All actions of the browser. Importing `maniple.browser` registers the built-in ones."""


def action(  # noqa: PLR0913 - one declaration, given by keyword
    name: ActionName,
    parameters: type[Action],
    *,
    kind: ActionKind,
    line: str,
    prompt: str,
    done: str = "Did {action}",
    types_into: Literal["element", "focus"] | None = None,
    has_own_limits: bool = False,
) -> Callable[[_Function], _Function]:
    """Register the decorated coroutine function as an action; see `ActionDefinition` for the arguments."""

    def register(run: _Function) -> _Function:
        ACTIONS.add(
            ActionDefinition(name, parameters, run, kind, line, prompt, done, types_into, has_own_limits)
        )
        return run

    return register


def parse_action(given: Mapping[str, Any] | Action) -> Action:
    """See `ActionRegistry.parse`."""
    return ACTIONS.parse(given)


def success_text(action: Action) -> str:
    """Return the text of an action that succeeded, as far as it is known before."""
    return ACTIONS[action.action].done.format(**action.model_dump())


def describe_stored_picture(path: str) -> str:
    """Return the result of `take_screenshot`."""
    return f"Stored the picture as {path}"


def failure_text(action: ActionName, reason: str) -> str:
    """Return the text of an action that failed; `reason` is a sentence or part of one."""
    return f"Browser action '{action}' failed: {reason}"


@cache
def _properties(parameters: type[Action]) -> Mapping[str, Any]:
    return parameters.model_json_schema()["properties"]


def _is_missing(definition: ActionDefinition, key: str, value: Any) -> bool:
    return value is None or (value == "" and key not in definition.parameters.may_be_empty)


def _is_meant(value: Any) -> bool:
    return bool(value) and str(value).strip().lower() not in _FILLERS


def _unknown_text(definition: ActionDefinition, unknown: Sequence[str]) -> str:
    known = ", ".join((*definition.required, *definition.optional))
    takes = f"it takes {known}" if known else "it takes no parameters"
    return f"it has no parameter {', '.join(repr(key[:60]) for key in unknown[:5])}; {takes}"


def _missing_text(name: ActionName, required: Sequence[str], missing: str) -> str:
    if tuple(required) == ("index", "text"):
        return f"Index and text are required for '{name}' action"
    subject = _SUBJECTS.get(missing, f"{missing.replace('_', ' ').capitalize()} is")
    return f"{subject} required for '{name}' action"

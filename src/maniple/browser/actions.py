"""The 17 actions of `browser_use`: one model for all, which says in the contract's words what is missing.

Source: OpenManus's browser tool (the texts); `docs/browser.md` lists them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from maniple.browser.addresses import completed
from maniple.errors import BrowserError

ActionName = Literal[
    "go_to_url",
    "open_tab",
    "go_back",
    "refresh",
    "web_search",
    "click_element",
    "input_text",
    "scroll_down",
    "scroll_up",
    "scroll_to_text",
    "send_keys",
    "get_dropdown_options",
    "select_dropdown_option",
    "extract_content",
    "switch_tab",
    "close_tab",
    "wait",
]
ACTIONS: tuple[ActionName, ...] = get_args(ActionName)

_NEEDS: Mapping[ActionName, tuple[str, ...]] = {
    "go_to_url": ("url",),
    "open_tab": ("url",),
    "web_search": ("query",),
    "click_element": ("index",),
    "input_text": ("index", "text"),
    "scroll_to_text": ("text",),
    "send_keys": ("keys",),
    "get_dropdown_options": ("index",),
    "select_dropdown_option": ("index", "text"),
    "extract_content": ("goal",),
    "switch_tab": ("tab_id",),
}
ON_ELEMENTS = frozenset(name for name, needs in _NEEDS.items() if "index" in needs)
"""The actions that are done to one element; models may give others an `index`, too, which means nothing."""
_TAKES: Mapping[ActionName, tuple[str, ...]] = {
    "scroll_down": ("scroll_amount",),
    "scroll_up": ("scroll_amount",),
    "get_dropdown_options": ("text",),
    "wait": ("seconds",),
}
_SPOKEN = {"url": "URL is", "tab_id": "Tab ID is", "keys": "Keys are"}
# These may be "" on purpose: it empties a field.
_MAY_BE_EMPTY = {("input_text", "text")}


def _number(value: Any) -> Any:
    """Models write numbers as text, too, and tell an index with its brackets."""
    return value.strip().strip("[]*") if isinstance(value, str) else value


_Number = Annotated[int, BeforeValidator(_number)]
_Address = Annotated[str, AfterValidator(completed)]


class Action(BaseModel):
    """One thing to do in the browser, with what it needs; keys that an action does not use are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    action: ActionName
    url: _Address | None = None
    index: _Number | None = Field(default=None, ge=0)
    text: str | None = None
    scroll_amount: _Number | None = Field(default=None, ge=0)
    """CSS pixels; default: one window."""
    tab_id: _Number | None = None
    query: str | None = None
    goal: str | None = None
    keys: str | None = None
    seconds: float = Field(default=3, ge=0, allow_inf_nan=False)

    @classmethod
    def of(cls, given: "Mapping[str, Any] | Action") -> "Action":
        """Return the action that `given` names.

        Raises:
            BrowserError: there is no such action, something is missing or of a wrong kind; in the words
                that models know.
        """
        if isinstance(given, Action):
            return given
        name = given.get("action")
        if name not in ACTIONS:
            raise BrowserError(f"Unknown action: {name}")
        if missing := [key for key in _NEEDS.get(name, ()) if _is_missing(name, key, given.get(key))]:
            raise BrowserError(_required(name, missing))
        # Models fill in what an action does not use, too, and leave "" where they have nothing to say.
        needed, taken = _NEEDS.get(name, ()), _TAKES.get(name, ())
        used = {key: given.get(key) for key in (*needed, *taken) if key in needed or given.get(key) != ""}
        try:
            return cls.model_validate(
                {"action": name, **{key: value for key, value in used.items() if value is not None}}
            )
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BrowserError(f"Browser action '{name}' failed: {where}: {first['msg']}") from error


def _is_missing(action: str, key: str, value: Any) -> bool:
    return value is None or (value == "" and (action, key) not in _MAY_BE_EMPTY)


def _required(action: ActionName, missing: list[str]) -> str:
    if _NEEDS[action] == ("index", "text"):
        return f"Index and text are required for '{action}' action"
    key = missing[0]
    return f"{_SPOKEN.get(key, f'{key.capitalize()} is')} required for '{action}' action"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of an action that succeeded; one that fails raises `BrowserError`."""

    text: str
    """The contract's words, such as `Clicked element at index 3 - Downloaded file to report.pdf`."""
    changed: bool = True
    """Whether the page may be another now, so that indexes shown before are not to be used."""
    downloads: tuple[Path, ...] = ()

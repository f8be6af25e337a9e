"""`--model` and `/model`: which model answers for each role, and another choice for this session."""

import asyncio
import difflib
from collections.abc import Iterator, Sequence

from maniple.cli.text import clean, one_line, table_lines
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.types import DIRECTORS, LLM_TYPES, AgentName, LLMType

_LISTED_NAMES = 20
_NAME_CHARACTERS = 60
_OF_THE_ENDPOINT = (
    "base_url",
    "api_key",
    "provider",
    "options",
    "api_version",
    "timeout_seconds",
    "answer_seconds",
    "max_retries",
    "unreachable_seconds",
)
"""What another model of the same endpoint has in common with the configured one."""


class UnknownModel(ValueError):
    """No model, type or role has this name; the message lists those that exist."""


async def choose_models(settings: Settings, choices: Sequence[str]) -> Settings:
    """Return the settings with other models; each choice is one of these texts:

    - `NAME`: the basic type is this model, at the basic endpoint or wherever it is configured;
    - `TYPE=NAME`: this type is;
    - `ROLE=TYPE`: a role uses another type;
    - `TYPE`: all roles use this type.

    Raises `UnknownModel`, whose message names what is known, and `ConfigError` for an endpoint that cannot be
    used. The name is checked against the endpoint's list; an endpoint that lists nothing takes any name.
    """
    for choice in choices:
        settings = await _choose(settings, choice.strip())
    return settings


async def _choose(settings: Settings, choice: str) -> Settings:
    left, is_assigned, right = (part.strip() for part in choice.partition("="))
    kinds: dict[str, LLMType] = {kind: kind for kind in LLM_TYPES}
    target = left.casefold().replace("-", "_")
    if not is_assigned:
        if target not in kinds:
            return await _with_model(settings, "basic", left)
        _require_configured(settings)
        return _with_types(settings, dict.fromkeys(_roles(settings), kinds[target]))
    if target in kinds:
        return await _with_model(settings, kinds[target], right)
    if target not in _roles(settings):
        raise _unknown("role or type", left, (*_roles(settings), *LLM_TYPES))
    if right.casefold() not in kinds:
        raise _unknown("type", right, LLM_TYPES)
    return _with_types(settings, {target: kinds[right.casefold()]})


def _with_types(settings: Settings, types: dict[AgentName, LLMType]) -> Settings:
    team = settings.team.model_copy(update={"llms": {**settings.team.llms, **types}})
    return settings.model_copy(update={"team": team})


async def _with_model(settings: Settings, kind: LLMType, name: str) -> Settings:
    _require_configured(settings)
    configured = {one.model: one for one in settings.models.each()}
    chosen = configured.get(name)
    if chosen is None:
        endpoint = _model_of(settings.models, kind)
        listed = await _listed_at(endpoint)
        if not name or (listed and name not in listed):
            raise _unknown("model", name, (*configured, *listed))
        common = {field: getattr(endpoint, field) for field in _OF_THE_ENDPOINT}
        chosen = ModelSettings(model=name).model_copy(update=common)
    models = settings.models.model_copy(update={kind: chosen})
    return settings.model_copy(update={"models": models})


def _require_configured(settings: Settings) -> None:
    if not any(settings.models.each()):
        raise UnknownModel(
            "No endpoint is configured, so that there is no other model to choose. Set BASIC_API_KEY, "
            "BASIC_MODEL and BASIC_BASE_URL in .env."
        )


def _model_of(models: ModelsSettings, kind: LLMType) -> ModelSettings:
    """Return the model of a type, or the one that takes its place."""
    own = {"basic": models.basic, "reasoning": models.reasoning, "vision": models.vision}[kind]
    return own or models.basic or next(models.each())


def _unknown(what: str, name: str, known: Sequence[str]) -> UnknownModel:
    names = list(dict.fromkeys(clean(one_line(one, _NAME_CHARACTERS)) for one in known))
    close = difflib.get_close_matches(name, names, n=1)
    guess = f" Did you mean {close[0]}?" if close else ""
    more = f", … ({len(names) - _LISTED_NAMES} more)" if len(names) > _LISTED_NAMES else ""
    shown = one_line(clean(name), _NAME_CHARACTERS)
    return UnknownModel(
        f"There is no {what} {shown!r}.{guess} Known: {', '.join(names[:_LISTED_NAMES])}{more}."
    )


async def _listed_at(model: ModelSettings) -> list[str]:
    # It imports an HTTP client, which a conversation does not need before.
    from maniple.llms.model_listing import list_models

    return await list_models(model)


def _roles(settings: Settings) -> tuple[AgentName, ...]:
    return (*DIRECTORS, *settings.team.workers)


async def describe_models(settings: Settings, answering: str) -> str:
    """Return which model answers for each role, and what else can be chosen.

    `answering` names the model that answers where none is configured; "" while that is not known.
    """
    lines = [*await asyncio.to_thread(_role_lines, settings, answering)]
    if any(settings.models.each()):
        listed = await _listed_at(_model_of(settings.models, "basic"))
        configured = [one.model for one in settings.models.each()]
        names = list(dict.fromkeys((*configured, *listed)))
        shown = ", ".join(clean(one_line(name, _NAME_CHARACTERS)) for name in names[:_LISTED_NAMES])
        more = f", … ({len(names) - _LISTED_NAMES} more)" if len(names) > _LISTED_NAMES else ""
        lines.append(f"Known models: {shown}{more}")
        if not listed:
            lines.append("The endpoint does not list its models; other names are taken unchecked.")
    lines.append("For this session: /model NAME, /model TYPE=NAME, or /model ROLE=TYPE")
    return "\n".join(lines)


def _role_lines(settings: Settings, answering: str) -> Iterator[str]:
    from maniple.agents import build_roles, choose_llm
    from maniple.llms.providers import name_endpoint

    roles = build_roles(settings.team)
    names = (*DIRECTORS, *(name for name in roles if name in settings.team.enabled))
    rows = list[tuple[str, ...]]()
    for name in names:
        kind = choose_llm(name, roles, settings.team.llms)
        model = _model_of(settings.models, kind) if any(settings.models.each()) else None
        if model is None:
            rows.append((name, kind, answering or "found or started with the first question", ""))
        else:
            rows.append((name, kind, clean(model.model), clean(name_endpoint(model, "", "").url)))
    deep = _model_of(settings.models, "reasoning") if any(settings.models.each()) else None
    if deep is not None:
        url = clean(name_endpoint(deep, "", "").url)
        rows.append(("planner, --deep", "reasoning", clean(deep.model), url))
    yield from table_lines([("role", "type", "model", "endpoint"), *rows])

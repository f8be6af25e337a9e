"""Load settings: environment over `.env` over `conf.yaml` over defaults.

Misspelled keys and variables, which would otherwise have no effect, are reported with a suggestion.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from maniple.config.mcp_settings import fill_variables
from maniple.config.placeholders import describe_placeholders
from maniple.config.settings import Settings
from maniple.config.sources import (
    ALIASES,
    MODEL_PREFIXES,
    PREFIX,
    Keys,
    SettingsOrigin,
    SettingsSource,
    read_dotenv,
    read_environment,
    read_yaml,
    resolve_paths,
)
from maniple.config.trust import describe_skipped, is_trusted, restrict_to_harmless
from maniple.errors import ConfigError

OPENAI_MODEL = "gpt-4o"
"""LangManus's default for `basic` and `vision`, used with a key and no URL."""


_SETTINGS_FILE = "conf.yaml"
_VARIABLES_FILE = ".env"
# After a known prefix, the rest is compared: KEY matches API_KEY with 0.60 and URL matches BASE_URL with
# 0.55, while the unrelated AUTH_USER, MAX_TOKENS and EFFORT stay below 0.50.
_NEAR_REST = 0.54
# BASCI_API_KEY matches BASIC_API_KEY with 0.923; the unrelated JIRA_API_KEY and VLLM_API_KEY with 0.917 and
# 0.909.
_NEAR_WHOLE = 0.92
_NEAR_PREFIX = 0.6


def load_settings(
    path: Path | str | None = None,
    *,
    env_file: Path | str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read and validate the settings.

    Without `path` and `env_file`, `conf.yaml` and `.env` of the working directory are read; unless that
    folder is trusted, only their settings marked `HARMLESS` apply. Files that the caller names are trusted.

    Files that do not exist are skipped. Raises `ConfigError` that lists every mistake with its file, line and
    key; values are never repeated in it, since they may be secrets. Variables and keys of MCP servers that
    are probably misspelt, limits that can never be reached, and keys that are placeholders, are in
    `Settings.notices`.
    """
    environment = os.environ if environment is None else environment
    file, variables = Path(path or _SETTINGS_FILE), Path(env_file or _VARIABLES_FILE)
    is_file_trusted = path is not None or is_trusted(file.absolute().parent, environment)
    is_env_trusted = env_file is not None or is_trusted(variables.absolute().parent, environment)
    yaml, of_file = _read_file(read_yaml, file, is_file_trusted)
    dotenv, of_variables = _read_file(read_dotenv, variables, is_env_trusted)
    folder = file.absolute().parent
    yaml.values.update(resolve_paths(yaml.values, folder))
    source = read_environment(environment).over(dotenv.over(yaml))
    by_path = ((file, of_file), (variables, of_variables))
    skipped = [describe_skipped(path, names) for path, names in by_path if names]
    skips_models = any(name.startswith("models.") for name in (*of_file, *of_variables))
    origin = SettingsOrigin(
        folder,
        source.places,
        is_file_trusted,
        tuple(skipped),
        skips_models,
        settings_file=file.absolute(),
        variables_file=variables.absolute(),
        are_variables_trusted=is_env_trusted,
    )
    _name_missing_models(source, origin)
    try:
        settings = Settings.model_validate(source.values)
        settings = settings.model_copy(
            update={"mcp": fill_variables(settings.mcp, environment, variables if is_env_trusted else None)}
        )
        notices = [
            *_unknown_variables(source),
            *ineffective_limits(settings),
            *_misspelled_server_keys(settings),
            *describe_placeholders(settings, origin),
        ]
        return settings.with_notices(notices, origin)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        raise origin.error(_describe_problem(one, origin) for one in problems) from None


def _read_file(
    read: Callable[[Path], SettingsSource], path: Path, has_trust: bool
) -> tuple[SettingsSource, Sequence[str]]:
    """Return what applies of a settings file, and the names of what does not."""
    source = read(path)
    return (source, ()) if has_trust else restrict_to_harmless(source, Settings)


def _name_missing_models(source: SettingsSource, origin: SettingsOrigin) -> None:
    """A key without a model name means OpenAI's usual model, as in LangManus; elsewhere it is a mistake."""
    models = source.values.get("models")
    for kind, prefix in MODEL_PREFIXES.items():
        section = models.get(kind) if isinstance(models, dict) else None
        if not isinstance(section, dict) or not section or section.get("model"):
            continue
        is_openai = str(section.get("provider") or "openai") == "openai"
        if kind != "reasoning" and is_openai and not str(section.get("base_url") or "").strip():
            section["model"] = OPENAI_MODEL
            continue
        place = origin.place_of(("models", kind, next(iter(section))))
        raise ConfigError(
            f"The settings have mistakes:\n  {place}: models.{kind}: a model name is missing. "
            f"Set {prefix}_MODEL in .env, or models.{kind}.model in conf.yaml."
        )


def _unknown_variables(source: SettingsSource) -> Iterator[str]:
    """Return notices about variables that are probably misspelt; unrelated variables are ignored."""
    for name, place in source.strangers.items():
        if near := nearest_variable(name):
            what = place if name in place else f"{place}: {name}"
            yield f"{what} is not read: there is no such variable. Did you mean {near}?"


def ineffective_limits(settings: Settings) -> Iterator[str]:
    """Return notices about limits that can never be reached."""
    if settings.runs.budget.cost is not None and (unpriced := settings.models.unpriced):
        yield (
            f"runs.budget.cost does not count what {', '.join(unpriced)} costs: no price is set. "
            "Set price_input and price_output beside the model, such as models.basic.price_input."
        )


def _misspelled_server_keys(settings: Settings) -> Iterator[str]:
    """Return notices about keys of MCP servers that are probably misspelt.

    Other unknown keys are allowed there.
    """
    for name, server in settings.mcp.servers.items():
        for key, meant in server.near_misses.items():
            yield f"mcp.servers.{name}.{key} has no effect: there is no such key. Did you mean {meant}?"


def _error_keys(problem: ErrorDetails) -> Keys:
    """Return the path of an invalid value; a check of several values together names it in `at`."""
    return (*problem["loc"], *(problem.get("ctx") or {}).get("at", ()))


def _describe_problem(problem: ErrorDetails, origin: SettingsOrigin) -> tuple[Keys, str]:
    keys = _error_keys(problem)
    if problem["type"] == "extra_forbidden":
        return keys, "there is no such key" + _suggestion(keys, origin.place_of(keys))
    return keys, problem["msg"].removeprefix("Value error, ")


def _suggestion(keys: Keys, place: str) -> str:
    if variable := re.search(rf"\b{PREFIX}\w+", place):
        near = nearest_variable(variable[0])
        return f"; did you mean {near}?" if near else ""
    known = list_keys(keys[:-1])
    close = difflib.get_close_matches(str(keys[-1]), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known here: {', '.join(known)}" if known else ""


def list_keys(keys: Keys) -> list[str]:
    """Return the keys of the settings section at the path `keys`; empty if it is not a section."""
    model: type[BaseModel] = Settings
    for key in keys:
        if isinstance(key, int):
            continue  # an index in a list of sections
        field = model.model_fields.get(str(key))
        below = _nested_section(field.annotation) if field else None
        if below is None:
            return []
        model = below
    return list(model.model_fields)


def nearest_variable(name: str) -> str | None:
    """Return the variable that the unknown name `name` probably means, if any."""
    prefix, _, rest = name.upper().partition("_")
    ours = _names_by_prefix()
    if prefix in ours:
        near = difflib.get_close_matches(rest, ours[prefix], n=1, cutoff=_NEAR_REST)
        return f"{prefix}_{near[0]}" if near else None
    # Most unrelated variables are excluded by their prefix alone, which is fast for large environments.
    prefixes = difflib.get_close_matches(prefix, ours, n=3, cutoff=_NEAR_PREFIX)
    known = [f"{one}_{each}" for one in prefixes for each in ours[one]]
    near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=_NEAR_WHOLE)
    return near[0] if near else None


@cache
def _names_by_prefix() -> dict[str, list[str]]:
    """Return the names after each prefix: `API_KEY` and others for `BASIC`."""
    rests: dict[str, list[str]] = {}
    for variable in (*ALIASES, *(PREFIX + "__".join(keys).upper() for keys in _leaf_keys(Settings, ()))):
        prefix, _, rest = variable.partition("_")
        rests.setdefault(prefix, []).append(rest)
    return rests


def _leaf_keys(model: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        below = _nested_section(field.annotation)
        if below is None or below is model:  # fallbacks are models, too
            yield (*above, name)
        else:
            yield from _leaf_keys(below, (*above, name))


def _nested_section(annotation: Any) -> type[BaseModel] | None:
    options = (annotation, *getattr(annotation, "__args__", ()))
    return next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), None)

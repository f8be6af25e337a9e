"""Load settings: environment over `.env` over `conf.yaml` over defaults."""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from maniple.config.names import keys_at, nearest_variable
from maniple.config.origin import Origin
from maniple.config.paths import anchored
from maniple.config.settings import Settings
from maniple.config.sources import MODEL_PREFIXES, PREFIX, Keys, Source, read_dotenv, read_environment
from maniple.config.variables import filled
from maniple.config.yaml_file import read_yaml
from maniple.errors import ConfigError

OPENAI_MODEL = "gpt-4o"
"""LangManus's default for `basic` and `vision`, used with a key and no URL."""


def load_settings(
    path: Path | str = "conf.yaml",
    *,
    env_file: Path | str = ".env",
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read and validate the settings.

    Files that do not exist are skipped. Raises `ConfigError` that lists every mistake with its file,
    line and key; values are never repeated in it, since they may be secrets. Variables and keys of
    MCP servers that are nearly ours, and a limit that nothing reaches, are told in `Settings.notices`.
    """
    environment = os.environ if environment is None else environment
    yaml = read_yaml(Path(path))
    folder = Path(path).absolute().parent
    yaml.values.update(anchored(yaml.values, folder))
    source = read_environment(environment).over(read_dotenv(Path(env_file)).over(yaml))
    origin = Origin(folder, source.places)
    _name_missing_models(source, origin)
    try:
        settings = Settings.model_validate(source.values)
        settings = settings.model_copy(update={"mcp": filled(settings.mcp, environment, Path(env_file))})
        notices = [*_notices(source), *_idle_limits(settings), *_slips_at_servers(settings)]
        return settings.noting(notices, origin)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        lines = [_sentence(_keys(p), p["type"], p["msg"], origin) for p in problems]
        raise ConfigError("The settings have mistakes:\n" + "\n".join(lines)) from None


def _name_missing_models(source: Source, origin: Origin) -> None:
    """A key without a model name means OpenAI's usual model, as in LangManus; elsewhere it is a mistake."""
    models = source.values.get("models")
    for kind, prefix in MODEL_PREFIXES.items():
        section = models.get(kind) if isinstance(models, dict) else None
        if not isinstance(section, dict) or not section or section.get("model"):
            continue
        if kind != "reasoning" and not str(section.get("base_url") or "").strip():
            section["model"] = OPENAI_MODEL
            continue
        place = origin.place_of(("models", kind, next(iter(section))))
        raise ConfigError(
            f"The settings have mistakes:\n  {place}: models.{kind}: a model name is missing. "
            f"Set {prefix}_MODEL in .env, or models.{kind}.model in conf.yaml."
        )


def _notices(source: Source) -> Iterator[str]:
    """Name the variables that look like ours but for a slip; a stranger's are let through in silence."""
    for name, place in source.strangers.items():
        if near := nearest_variable(name):
            what = place if name in place else f"{place}: {name}"
            yield f"{what} is not read: there is no such variable. Did you mean {near}?"


def _idle_limits(settings: Settings) -> Iterator[str]:
    """Name a limit that nothing could reach."""
    if settings.runs.budget.cost is not None and (unpriced := settings.models.unpriced):
        yield (
            f"runs.budget.cost does not count what {', '.join(unpriced)} costs: no price is set. "
            "Set price_input and price_output beside the model, such as models.basic.price_input."
        )


def _slips_at_servers(settings: Settings) -> Iterator[str]:
    """Name the keys of MCP servers that are nearly ours: other programs' keys are let through there."""
    for name, server in settings.mcp.servers.items():
        for key, meant in server.near_misses.items():
            yield f"mcp.servers.{name}.{key} has no effect: there is no such key. Did you mean {meant}?"


def _keys(problem: ErrorDetails) -> Keys:
    """Return where a mistake is; a check of several values together says `at` which of them it is."""
    return (*problem["loc"], *(problem.get("ctx") or {}).get("at", ()))


def _sentence(keys: Keys, kind: str, message: str, origin: Origin) -> str:
    name = ".".join(str(key) for key in keys)
    place = origin.place_of(keys)
    if kind == "extra_forbidden":
        message = "there is no such key" + _did_you_mean(keys, place)
    return f"  {place}: {name}: {message.removeprefix('Value error, ')}"


def _did_you_mean(keys: Keys, place: str) -> str:
    if variable := re.search(rf"\b{PREFIX}\w+", place):
        near = nearest_variable(variable[0])
        return f"; did you mean {near}?" if near else ""
    known = keys_at(keys[:-1])
    close = difflib.get_close_matches(str(keys[-1]), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known here: {', '.join(known)}" if known else ""

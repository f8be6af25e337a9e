"""Load settings: environment over `.env` over `conf.yaml` over defaults."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from maniple.config.settings import Settings
from maniple.config.sources import Keys, Source, read_dotenv, read_environment, read_yaml
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
    line and key; values are never repeated in it, since they may be secrets.
    """
    environment = os.environ if environment is None else environment
    source = read_environment(environment).over(read_dotenv(Path(env_file)).over(read_yaml(Path(path))))
    _name_missing_models(source)
    try:
        return Settings.model_validate(source.values)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        lines = [_sentence(tuple(p["loc"]), p["type"], p["msg"], source) for p in problems]
        raise ConfigError("The settings have mistakes:\n" + "\n".join(lines)) from None


def _name_missing_models(source: Source) -> None:
    """A key without a model name means OpenAI's usual model, as in LangManus; elsewhere it is a mistake."""
    models = source.values.get("models")
    for kind, prefix in (("basic", "BASIC"), ("reasoning", "REASONING"), ("vision", "VL")):
        section = models.get(kind) if isinstance(models, dict) else None
        if not isinstance(section, dict) or not section or section.get("model"):
            continue
        if kind != "reasoning" and not section.get("base_url"):
            section["model"] = OPENAI_MODEL
            continue
        place = _place(("models", kind, next(iter(section))), source)
        raise ConfigError(
            f"The settings have mistakes:\n  {place}: models.{kind}: a model name is missing. "
            f"Set {prefix}_MODEL in .env, or models.{kind}.model in conf.yaml."
        )


def _sentence(keys: Keys, kind: str, message: str, source: Source) -> str:
    name = ".".join(str(key) for key in keys)
    if kind == "extra_forbidden":
        message = "there is no such key" + _did_you_mean(keys)
    return f"  {_place(keys, source)}: {name}: {message}"


def _place(keys: Keys, source: Source) -> str:
    for length in range(len(keys), 0, -1):
        if place := source.places.get(keys[:length]):
            return place
    return "settings"


def _did_you_mean(keys: Keys) -> str:
    known = _keys_at(Settings, keys[:-1])
    close = difflib.get_close_matches(str(keys[-1]), known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known here: {', '.join(known)}" if known else ""


def _keys_at(model: type[BaseModel], keys: Keys) -> list[str]:
    for key in keys:
        field = model.model_fields.get(str(key))
        below: Any = _section_of(field.annotation) if field else None
        if below is None:
            return []
        model = below
    return list(model.model_fields)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    options = (annotation, *getattr(annotation, "__args__", ()))
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)

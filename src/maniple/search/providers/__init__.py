"""The registry of search providers.

Every module of this package declares one provider as `PROVIDER`. Other packages register theirs through the
entry point group `maniple.search`, and the settings by a line of `search.retrievers`: the entry's name is the
provider's, its value a `ProviderSpec`, or a retriever of LangChain (see `maniple.search.retrievers`). Such a
provider is imported only when `search.providers` names it, so installing a package changes nothing.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint

from pydantic import ValidationError

from maniple.config.values import Section
from maniple.config.web_settings import (
    BUILT_IN_PROVIDERS,
    SearchSettings,
)
from maniple.errors import ConfigError
from maniple.search.provider import ProviderSpec, describe_mistakes
from maniple.text import shorten

_REASON_CHARACTERS = 300


def load_provider(name: str, settings: SearchSettings | None = None) -> ProviderSpec:
    """Import the provider called `name`; raises `ConfigError` where another package's cannot be used."""
    if name in BUILT_IN_PROVIDERS:
        return _load_built_in(name)
    point = (settings or SearchSettings()).other_providers().get(name)
    if point is None:
        raise ConfigError(f"search.providers names {name}, which is not installed.")
    return _load_entry_point(point)


@cache
def _load_built_in(name: str) -> ProviderSpec:
    return import_module(f"{__name__}.{name}").PROVIDER


def _load_entry_point(point: EntryPoint) -> ProviderSpec:
    from maniple.search.retrievers import retriever_spec

    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        reason = shorten(f"{type(error).__name__}: {error}", _REASON_CHARACTERS)
        raise ConfigError(
            f"search provider {point.name}: {point.value} cannot be imported: {reason}. "
            "Install what it needs, or remove it from search.providers."
        ) from error
    spec = loaded if isinstance(loaded, ProviderSpec) else retriever_spec(point.name, loaded)
    if spec is None or spec.name != point.name:
        raise ConfigError(
            f"search provider {point.name}: {point.value} is neither a ProviderSpec of that name "
            "nor a retriever of LangChain."
        )
    return spec


def select_providers(settings: SearchSettings) -> Sequence[ProviderSpec]:
    """Return the providers that `search.providers` names, whether they are configured or not.

    Without that setting: the built-in ones that have a rank and what they require, by rank.
    """
    if settings.providers is not None:
        return [load_provider(name, settings) for name in settings.providers]
    ranked = [spec for name in BUILT_IN_PROVIDERS if (spec := load_provider(name)).rank is not None]
    ready = [spec for spec in ranked if not _missing_requirement(spec, settings)]
    return sorted(ready, key=lambda spec: spec.rank or 0)


def select_papers(settings: SearchSettings) -> Sequence[ProviderSpec]:
    """Return the providers of papers, whether they are configured or not; see `search.papers`."""
    if settings.papers is not None:
        return [load_provider(name, settings) for name in settings.papers]
    names = BUILT_IN_PROVIDERS if settings.providers is None else settings.providers
    return [spec for name in names if (spec := load_provider(name, settings)).is_scholarly]


def missing_settings(settings: SearchSettings) -> Mapping[str, str]:
    """Return the selected providers that cannot be asked, each with the first setting that it lacks."""
    selected = (*select_providers(settings), *select_papers(settings))
    missing = {spec.name: _missing_requirement(spec, settings) for spec in selected}
    return {name: setting for name, setting in missing.items() if setting}


def _missing_requirement(spec: ProviderSpec, settings: SearchSettings) -> str:
    for key, shown in spec.requires.items():
        if not getattr(settings, key):
            return shown
    given = settings.options.get(spec.name, {})
    fields = spec.options.model_fields if spec.options else {}
    for key, declared in fields.items():
        if declared.is_required() and key not in given:
            return f"search.options.{spec.name}.{key}"
    return ""


def parse_options(spec: ProviderSpec, settings: SearchSettings) -> Section | None:
    """Validate `search.options.<name>`; raises `ConfigError` that names each mistake but no value."""
    if spec.options is None:
        if settings.options.get(spec.name) and not spec.reads_options:
            raise ConfigError(f"search.options.{spec.name}: this provider has no options; remove them.")
        return None
    try:
        return spec.options.model_validate(settings.options.get(spec.name, {}))
    except ValidationError as error:
        raise ConfigError(describe_mistakes(f"search.options.{spec.name}", error)) from error

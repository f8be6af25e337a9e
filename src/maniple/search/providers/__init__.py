"""The registry of search providers.

Every module of this package declares one provider as `PROVIDER`. Other packages register theirs through the
entry point group `maniple.search`: the entry's name is the provider's, its value a `ProviderSpec`. Such a
provider is imported only when `search.providers` names it, so installing a package changes nothing.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from pydantic import ValidationError

from maniple.config.values import Section
from maniple.config.web_settings import (
    BUILT_IN_PROVIDERS,
    SearchSettings,
    provider_entry_points,
)
from maniple.errors import ConfigError
from maniple.search.provider import ProviderSpec


def load_provider(name: str) -> ProviderSpec:
    """Import the provider called `name`; raises `ConfigError` where another package's cannot be used."""
    return _load_built_in(name) if name in BUILT_IN_PROVIDERS else _load_entry_point(name)


@cache
def _load_built_in(name: str) -> ProviderSpec:
    return import_module(f"{__name__}.{name}").PROVIDER


def _load_entry_point(name: str) -> ProviderSpec:
    point = provider_entry_points().get(name)
    if point is None:
        raise ConfigError(f"search.providers names {name}, which is not installed.")
    try:
        spec = point.load()
    except (Exception, SystemExit) as error:  # third-party code may fail in any way
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"search provider {name}: {point.value} cannot be imported: {reason}") from error
    if not isinstance(spec, ProviderSpec) or spec.name != name:
        raise ConfigError(f"search provider {name}: {point.value} is no ProviderSpec of that name.")
    return spec


def select_providers(settings: SearchSettings) -> Sequence[ProviderSpec]:
    """Return the providers that `search.providers` names, whether they are configured or not.

    Without that setting: the built-in ones that have a rank and what they require, by rank.
    """
    if settings.providers is not None:
        return [load_provider(name) for name in settings.providers]
    ranked = [spec for name in BUILT_IN_PROVIDERS if (spec := load_provider(name)).rank is not None]
    ready = [spec for spec in ranked if not _missing_requirement(spec, settings)]
    return sorted(ready, key=lambda spec: spec.rank or 0)


def missing_settings(settings: SearchSettings) -> Mapping[str, str]:
    """Return the selected providers that cannot be asked, each with the first setting that it lacks."""
    missing = {spec.name: _missing_requirement(spec, settings) for spec in select_providers(settings)}
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
        return None
    try:
        return spec.options.model_validate(settings.options.get(spec.name, {}))
    except ValidationError as error:
        mistakes = "\n".join(
            f"  search.options.{spec.name}.{'.'.join(map(str, one['loc']))}: {one['msg']}"
            for one in error.errors(include_input=False, include_url=False)
        )
        raise ConfigError(f"The settings have mistakes:\n{mistakes}") from error

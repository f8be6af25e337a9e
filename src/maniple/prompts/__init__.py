"""Renders prompts from Markdown templates."""

from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template, TemplateError, TemplateSyntaxError

from maniple.errors import ConfigError
from maniple.prompts.examples import find_copied as find_copied
from maniple.prompts.examples import read_examples as read_examples
from maniple.prompts.examples import read_material


@cache
def _environment() -> Environment:
    folder = files(__name__)
    return Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        # Prompts are plain text for a model and are never shown as HTML.
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def preload() -> None:
    """Read every prompt now, so that no file is read while the team works."""
    folder = files(__name__)
    for path, prefix in ((folder, ""), (folder / "compact", "compact/")):
        for file in path.iterdir():
            if file.name.endswith(".md"):
                _environment().get_template(f"{prefix}{file.name}")
    read_examples()
    read_material()


def render(name: str, **values: object) -> str:
    """Render `name`.md; the current time is `now`. Raises `UndefinedError` if a value is missing."""
    return _rendered(_environment().get_template(f"{name}.md"), values)


def render_own(text: str, **values: object) -> str:
    """Render a configured worker's prompt, followed by the instructions for every worker."""
    return f"{_rendered(_compiled(text), values)}\n{render('worker', **values)}"


def check_template(text: str, source: str) -> None:
    """Raise `ConfigError` with `source` and the line when `render_own` could not render `text`."""
    try:
        render_own(text, tools=True, team=["reporter"], locale="", language="")
    except TemplateSyntaxError as error:
        raise ConfigError(f"{source}, line {error.lineno}: {error.message}") from error
    except (TemplateError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
        names = "between {{ and }} may stand tools, team, locale, language and now"
        raise ConfigError(f"{source}: {error}; {names}.") from error


@lru_cache(maxsize=64)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


def _rendered(template: Template, values: dict[str, object]) -> str:
    now = datetime.now().astimezone().strftime("%a %b %d %Y %H:%M %z")
    return template.render(now=now, **values).strip()

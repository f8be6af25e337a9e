"""Prompts are Markdown files; this renders them."""

from datetime import datetime
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined


@cache
def _environment() -> Environment:
    folder = files(__name__)
    return Environment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        # Prompts are plain text for a model; nothing here is ever shown as HTML.
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, **values: object) -> str:
    """Render `name`.md with the current time added; a missing value is an error, not an empty string."""
    now = datetime.now().astimezone().strftime("%a %b %d %Y %H:%M %z")
    return _environment().get_template(f"{name}.md").render(now=now, **values).strip()

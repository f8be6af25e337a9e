"""Prompts are Markdown files; this renders them."""

import json
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

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


@cache
def read_examples() -> dict[str, list[tuple[str, Any]]]:
    """Return the worked examples for small models, by name: pairs of a question and its answer."""
    text = (files(__name__) / "compact" / "examples.json").read_text(encoding="utf-8")
    return json.loads(text)


def preload() -> None:
    """Read every prompt now, so that no file is read while the team works."""
    folder = files(__name__)
    for path, prefix in ((folder, ""), (folder / "compact", "compact/")):
        for file in path.iterdir():
            if file.name.endswith(".md"):
                _environment().get_template(f"{prefix}{file.name}")
    read_examples()


def render(name: str, **values: object) -> str:
    """Render `name`.md with the current time added; a missing value is an error, not an empty string."""
    now = datetime.now().astimezone().strftime("%a %b %d %Y %H:%M %z")
    return _environment().get_template(f"{name}.md").render(now=now, **values).strip()

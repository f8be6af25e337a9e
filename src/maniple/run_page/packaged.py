"""Pages that are packaged: their templates and styles, and what a content security policy says of a part."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import ChainableUndefined, Environment, FunctionLoader, Undefined


@cache
def style_of(package: str, name: str) -> str:
    """Return a style that lies in `package`. Blocks when it is read first."""
    return _read(package, name)


def templates_of(package: str, undefined: type[Undefined] = ChainableUndefined) -> Environment:
    """Return the templates of HTML that lie in `package`; whatever is put into them is text."""
    return Environment(
        loader=FunctionLoader(lambda name: _read(package, name)),
        autoescape=True,
        undefined=undefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def digest_of(text: str) -> str:
    """Return what lets this script or style into a page in its policy (CSP Level 3, 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")

"""Templates and styles of packaged HTML pages, and hashes for their content security policies."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader


@cache
def read_style(package: str, name: str) -> str:
    """Return a style sheet of `package`. The first call blocks."""
    return _read(package, name)


def load_templates(package: str) -> Environment:
    """Return the HTML templates of `package`; all inserted values are escaped."""
    return Environment(
        loader=FunctionLoader(lambda name: _read(package, name)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def csp_hash(text: str) -> str:
    """Return the hash source by which a policy allows this script or style (CSP Level 3, 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")

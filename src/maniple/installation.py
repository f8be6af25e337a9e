"""How this copy of maniple was installed, and the command that adds an optional part to it."""

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

_PACKAGE = "maniple"


@cache
def is_clone() -> bool:
    """Return whether maniple runs from a clone (an editable installation, or the sources alone)."""
    try:
        origin = distribution(_PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return bool(origin and json.loads(origin).get("dir_info", {}).get("editable"))


def installing(extra: str) -> str:
    """Return the command that adds what an optional part of maniple needs."""
    if is_clone():
        return f"`.venv/bin/python -m pip install -e '.[{extra}]'` in your clone of maniple"
    return f"`pip install '{_PACKAGE}[{extra}]'`"

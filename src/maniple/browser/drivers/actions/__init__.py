"""The actions' code. Importing this package imports every module in it, which registers their actions."""

import pkgutil
from collections.abc import Iterable
from importlib import import_module

_BUILT_IN = ("navigation", "interaction", "scrolling", "dropdowns", "tab_actions")
"""In the order in which models are shown their actions; other modules follow by name."""


def import_actions(path: Iterable[str]) -> None:
    """Import all modules in the package's folders `path`."""
    found = (module.name for module in pkgutil.iter_modules(path))
    for name in dict.fromkeys((*_BUILT_IN, *found)):
        import_module(f"{__name__}.{name}")


import_actions(__path__)

"""Imports packages, says which cannot be, and leaves matplotlib's list of fonts in the current directory.

Runs inside the sandbox, where only its text is: it must stand alone, with the standard library and nothing
of maniple. It prints one line of JSON, `{package: why it cannot be imported}`.
"""

import json
import shutil
import sys
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path


def print_broken(packages: list[str]) -> None:
    """Try the modules of every package of that name; names are spelled as in PEP 503."""
    modules: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            name = distribution.lower().replace("_", "-").replace(".", "-")
            modules.setdefault(name, []).append(module)
    broken = {package: _why_not(modules.get(package, [])) for package in packages}
    _keep_font_list()
    print(json.dumps({package: why for package, why in broken.items() if why}))


def _why_not(modules: list[str]) -> str:
    if not modules:
        return "it is not installed"
    for module in modules:
        if module.startswith("_"):
            continue
        try:
            import_module(module)
        except BaseException as error:  # noqa: BLE001 - a foreign module may even call sys.exit
            return f"{type(error).__name__}: {error}"[:200]
    return ""


def _keep_font_list() -> None:
    if "matplotlib" not in sys.modules:
        return
    cache = import_module("matplotlib").get_cachedir()
    import_module("matplotlib.font_manager")
    for file in Path(cache).glob("fontlist-*.json"):
        shutil.copy(file, ".")

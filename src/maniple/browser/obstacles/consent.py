"""Known consent tools, told no by DuckDuckGo's maintained rules (`duckduckgo-autoconsent-py`, MPL-2.0)."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from maniple.browser.obstacles.surface import Document

_MILLISECONDS = 2_500
_NEEDED = (
    "name",
    "runContext",
    "cosmetic",
    "intermediate",
    "vendorUrl",
    "detectCmp",
    "detectPopup",
    "optOut",
)
_URL_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class _Rules:
    """What autoconsent knows; only what can be of use is sent to a page."""

    script: str
    general: tuple[Mapping[str, Any], ...]
    of_sites: tuple[tuple[Any, Mapping[str, Any]], ...]
    """Each with the pattern of the addresses that it is for."""

    def matching(self, url: str) -> list[Mapping[str, Any]]:
        return [*self.general, *(rule for pattern, rule in self.of_sites if pattern.search(url))]


async def opt_out(document: Document) -> bool:
    """Whether a known consent tool was open in the document and was told no.

    Raises:
        BrowserError: the document has gone, perhaps because the tool loaded it anew.
    """
    rules = await asyncio.to_thread(_load)
    url = await document.evaluate("() => location.href", None)
    matching = rules.matching(url[:_URL_CHARACTERS] if isinstance(url, str) else "")
    told = {"rules": json.dumps(matching), "milliseconds": _MILLISECONDS}
    return await document.evaluate(rules.script, told) is True


@cache
def _load() -> _Rules:
    import duckduckgo_autoconsent as autoconsent
    import re2

    talk = files("maniple.browser.obstacles").joinpath("consent.js").read_text("utf-8")
    general, of_sites = [], []
    for rule in json.loads(autoconsent.rules_json()):
        pattern = rule.get("runContext", {}).get("urlPattern")
        lean = {key: rule[key] for key in _NEEDED if key in rule}
        if not pattern:
            general.append(lean)
            continue
        try:
            of_sites.append((re2.compile(pattern), lean))
        except re2.error:
            # JavaScript can do more than RE2; the page compares it once more anyway.
            general.append(lean)
    return _Rules(talk.replace("AUTOCONSENT;", autoconsent.bundle()), tuple(general), tuple(of_sites))

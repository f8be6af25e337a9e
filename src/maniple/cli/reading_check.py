"""What the doctor says of reading pages: who fetches them, by whose rules, and what of them can be read."""

from maniple.cli.findings import Finding
from maniple.config import Settings
from maniple.config.fetch_settings import FetchSettings

_NAME = "reading pages"
_FORMATS = "HTML, PDF, Word, RSS, Atom, JSON, CSV, text, pictures"


def check_reading(settings: Settings) -> Finding:
    """Say how pages are read; nothing is fetched. A key that is never used is worth a word."""
    fetch = settings.fetch
    rules = "by robots.txt" if fetch.robots else "whatever robots.txt says"
    opened = f"; also of {', '.join(fetch.allow_private)}" if fetch.allow_private else ""
    detail = f"{_reader(fetch)}, {rules}; {_FORMATS}{opened}"
    if fetch.jina == "never" and fetch.jina_api_key is not None:
        remedy = "Set fetch.jina: auto, or take JINA_API_KEY out."
        return Finding(_NAME, "warning", f"{detail}; JINA_API_KEY is there and not used", remedy)
    return Finding(_NAME, "ok", detail)


def _reader(fetch: FetchSettings) -> str:
    key = "JINA_API_KEY" if fetch.jina_api_key is not None else "without a key"
    match fetch.jina:
        case "always":
            return f"through Jina's reader alone ({key})"
        case "fallback":
            return f"directly, else through Jina's reader ({key})"
        case "auto" if fetch.jina_api_key is not None:
            return f"through Jina's reader first ({key}), else directly"
        case _:
            return "directly"

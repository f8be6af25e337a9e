"""What of a request has no effect, and how the answer says so."""

from collections.abc import Sequence
from urllib.parse import quote

from maniple.api.requests import RUN_OPTIONS, TeamRequest
from maniple.runs import AcceptedRun
from maniple.text import fix_surrogates, shorten

_SHOWN_NAMES = 50
_NAME_CHARACTERS = 100


def name_unused_options(asked: TeamRequest, accepted: AcceptedRun) -> list[str]:
    """Return the options of a request that have no effect: it became an answer or a message to a run.

    An option with its default value asks for nothing.
    """
    if accepted.is_new:
        return []
    fields = type(asked).model_fields
    return [name for name in RUN_OPTIONS if getattr(asked, name) not in (None, fields[name].default)]


def describe_not_used(names: Sequence[str]) -> dict[str, str]:
    """Return the header that names the fields of a request that have no effect, percent-encoded."""
    if not names:
        return {}
    shown = (fix_surrogates(shorten(name, _NAME_CHARACTERS)) for name in names[:_SHOWN_NAMES])
    return {"x-maniple-not-used": ", ".join(quote(name, safe="[]") for name in shown)}

"""What a site answered instead of a page, as a sentence that a model can act on."""

from http import HTTPStatus

from maniple.egress import PermanentFetchError
from maniple.errors import FetchError

_DAY_SECONDS = 86_400.0
_FINAL_STATUSES = {401, 404, 410, 451}


def status_error(url: str, status: int, retry_after_seconds: float | None = None) -> FetchError:
    """The error for an answer that is no page: HTTP status 300 and above, or one without content."""
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "an unknown status"
    advice = {
        401: "It needs a login; use another source.",
        403: "It keeps programs out or needs a login; use another source.",
        404: "Check the address or search for the page.",
        429: "It wants fewer requests; use another source for now.",
    }.get(status, "Use another source.")
    if retry_after_seconds is not None and retry_after_seconds > _DAY_SECONDS:
        advice = "It is not to be asked again today; use another source."
    elif retry_after_seconds is not None:
        advice = f"It can be asked again in {retry_after_seconds:,.0f} s; use another source until then."
    raised = PermanentFetchError if status in _FINAL_STATUSES else FetchError
    return raised(f"{url} answered {status} ({phrase}). {advice}")


def broken_redirect(url: str, cause: str) -> FetchError:
    """The error for the page `url` that leads to no address; `cause` is that, or what is wrong with it."""
    return FetchError(f"{url} redirects to what is not a valid address ({cause[:200]}); use another source.")


def too_many_redirects(url: str) -> FetchError:
    """The error for a page that leads on and on; `url` is the address that was asked for."""
    return FetchError(f"{url} redirects too often; use the address it should end at.")

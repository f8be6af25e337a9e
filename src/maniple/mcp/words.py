"""What is wrong with a server, in one line."""

from maniple.errors import ManipleError

_MOST_CHARACTERS = 500


def reason_of(error: BaseException) -> str:
    """Return the first reason in `error`, also in a group of them, in at most 500 characters."""
    while isinstance(error, BaseExceptionGroup):
        # What the settings or the server said is worth more than that the connection closed.
        ours = next((one for one in error.exceptions if isinstance(one, ManipleError)), None)
        error = ours or error.exceptions[0]
    words = " ".join(str(error).split())[:_MOST_CHARACTERS]
    if isinstance(error, ManipleError) or type(error).__name__ == "MCPError":
        return words or "no further words"
    return f"{type(error).__name__}: {words}" if words else type(error).__name__

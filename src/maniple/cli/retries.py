"""Answers that begin anew because the stream of the first broke off."""

from maniple.events import Message

VOID = "The model's answer broke off: what it said above is void, and it answers anew."
ANEW = "The model's answer broke off: what it had said is void, and it answers anew."
"""For where the answer was not shown yet."""


class Retries:
    """Tells when a model call takes another way than the text that was already shown of it.

    Within one call all text has the `message_id` of its first try, as long as later tries only go on from
    there; another id is another answer.
    """

    def __init__(self) -> None:
        self._message_id = ""

    def begin(self) -> None:
        """A model call begins."""
        self._message_id = ""

    def voids(self, event: Message) -> bool:
        """Say whether this piece is the first of an answer that replaces the one before."""
        if not event.delta.content:  # a later try thinks under its own id, whatever it says then
            return False
        before, self._message_id = self._message_id, event.message_id
        return before not in ("", event.message_id)

"""A long thread in short: what is older than the newest part is summarised once and kept beside it."""

from langchain_core.language_models import BaseChatModel

from maniple.agents.middleware.context_window import find_newest_start, summarize
from maniple.graph.state import PrivateState, State, conversation_of
from maniple.llms.context_windows import count_tokens, room_of

HISTORY_SHARE = 0.5
"""Of the model's room: a conversation that is longer is put into a summary and its newest part."""
NEWEST_SHARE = 0.25


async def summarised(model: BaseChatModel, state: State) -> PrivateState:
    """Return the update that gives `state` a summary of its older part, or none where all of it fits.

    No message is taken from the thread: only what models are shown of it changes.
    """
    said, room = conversation_of(state), room_of(model)
    if count_tokens(said) <= HISTORY_SHARE * room:
        return {}
    start = find_newest_start(said, int(NEWEST_SHARE * room))
    upto = said[start - 1].id if start > 1 else None
    if upto is None or not (text := await summarize(model, said[:start])):
        return {}
    return {"summary": {"upto": upto, "text": text}}

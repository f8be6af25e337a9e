"""What has arrived of one streamed answer."""

import httpx2
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from maniple.llms.thoughts import ThoughtSplitter, add_reasoning


class Reading:
    """Takes the chunks of an answer and says which to pass on.

    None is passed on before the first word, so that an answer that fails until then can be asked for
    again, here or elsewhere, and nobody has seen a part of it.
    """

    def __init__(self) -> None:
        self.arrived = False
        """Something was received."""
        self.shown = False
        """Something was passed on."""
        self._finished = False
        self._thoughts = ThoughtSplitter()
        self._held: list[ChatGenerationChunk] = []

    def take(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """Return the chunks that can be passed on now that `chunk` has arrived."""
        self.arrived = True
        ends = bool((chunk.generation_info or {}).get("finish_reason"))
        self._finished = self._finished or ends
        chunk = self._without_thoughts(chunk, ends=ends)
        self._held.append(chunk)
        if not (self.shown or self._finished or _says_something(chunk)):
            return []
        self.shown = True
        ready, self._held = self._held, []
        return ready

    def close(self) -> None:
        """The stream is over; raises what is wrong with an answer that is not."""
        if not self.arrived:
            raise ValueError("the answer was empty")
        if not self._finished:
            raise httpx2.RemoteProtocolError("the stream ended before the answer did")

    def _without_thoughts(self, chunk: ChatGenerationChunk, *, ends: bool) -> ChatGenerationChunk:
        message = chunk.message
        if not isinstance(message, AIMessageChunk) or not isinstance(message.content, str):
            return chunk
        thought, text = self._thoughts.feed(message.content)
        if ends:
            more_thought, more_text = self._thoughts.end()
            thought, text = thought + more_thought, text + more_text
        if text == message.content:
            return chunk
        message.content = text
        add_reasoning(message, thought)
        return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _says_something(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    if not isinstance(message, AIMessageChunk):
        return True
    return bool(message.content or message.tool_call_chunks or message.additional_kwargs)

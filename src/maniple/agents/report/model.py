"""A chat model whose answer is a report: only what holds of it is streamed."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from maniple.agents.report.draft import Draft
from maniple.agents.report.uncited import UncitedDraft
from maniple.llms import Capabilities, capabilities_of


class CheckedModel(BaseChatModel):
    """Asks `model` and passes its answer through a draft, a new one for each call.

    Callbacks, events and the answer have the checked text alone; thoughts pass at once, usage and the reason
    of the end as they came. It can only be asked asynchronously.
    """

    model: BaseChatModel = Field(exclude=True)
    draft: Callable[[], Draft | UncitedDraft] = Field(exclude=True)
    cache: Any = Field(default=False, exclude=True)
    """Not from a cache: what holds is another matter in each run."""

    @property
    def capabilities(self) -> Capabilities:
        """What is known of the model that is asked."""
        return capabilities_of(self.model)

    @property
    def _llm_type(self) -> str:
        return self.model._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.model._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.model._get_ls_params(stop=stop, **kwargs)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("A report is only checked asynchronously; use ainvoke or astream.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        result = await self.model._agenerate(messages, stop, None, **kwargs)
        first = result.generations[0]
        draft = self.draft()
        text = await draft.feed(first.message.text) + await draft.end()
        message = cast("AIMessage", first.message).model_copy(update={"content": text})
        checked = ChatGeneration(message=message, generation_info=first.generation_info)
        return ChatResult(generations=[checked], llm_output=result.llm_output)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        draft, ending = self.draft(), list[ChatGenerationChunk]()
        message_id: str | None = None
        stream = cast("Any", self.model._astream(messages, stop, None, **kwargs))
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                message_id = chunk.message.id or message_id
                ready, bare = await draft.feed(chunk.text), _without_text(chunk)
                if ready:
                    yield _spoken(ready, message_id)
                # Nothing is said behind the end: it waits for what is still to be looked at.
                if ending or _ends(chunk):
                    ending.append(bare)
                elif _has_more(bare):
                    yield bare
        if rest := await draft.end():
            yield _spoken(rest, message_id)
        for chunk in ending:
            yield chunk


def _spoken(text: str, message_id: str | None) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text, id=message_id))


def _without_text(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message.model_copy(update={"content": ""})
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _ends(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason")) or _is_last(chunk)


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return getattr(chunk.message, "chunk_position", None) == "last"


def _has_more(chunk: ChatGenerationChunk) -> bool:
    """Whether a chunk says anything beside its text."""
    message = cast("AIMessageChunk", chunk.message)
    return bool(
        message.additional_kwargs
        or message.tool_call_chunks
        or message.usage_metadata
        or message.response_metadata
        or chunk.generation_info
    )

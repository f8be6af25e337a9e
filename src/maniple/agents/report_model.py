"""A chat model that passes the text of a report through a draft."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Mapping,
)
from contextlib import aclosing
from typing import Any, Protocol, cast, runtime_checkable

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from maniple.agents.claim_events import report_claims
from maniple.agents.report_draft import Draft
from maniple.llms import Capabilities, capabilities_of
from maniple.llms.streams import limit_answer, report_chunk


class CheckedReportModel(BaseChatModel):
    """A chat model that passes the answer of `model` through a draft; each call gets a new draft.

    Callbacks, events and the answer contain only the checked text, which ends with its score. Thoughts pass
    immediately; usage and finish reason pass unchanged. Only asynchronous calls are supported.
    """

    # LangChain makes the representation of each model for traces, which takes long for nested ones.
    model: BaseChatModel = Field(exclude=True, repr=False)
    draft: Callable[[], Draft] = Field(exclude=True, repr=False)
    locale: str = Field(default="", exclude=True)
    cache: Any = Field(default=False, exclude=True)
    """Caching is off, because the result of the check differs in each run."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the wrapped model."""
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
        raise NotImplementedError("Reports are only checked asynchronously. Use ainvoke or astream.")

    async def _agenerate_with_cache(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with limit_answer(run_manager) as reporter:
            return await super()._agenerate_with_cache(messages, stop, reporter, **kwargs)

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
        has_calls = bool(cast("AIMessage", first.message).tool_calls)
        text = await draft.feed(first.message.text)
        text += "".join([rest async for rest in end_draft(draft, has_calls=has_calls)])
        text += await report_draft_claims(draft, text, self.locale)
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
        async with aclosing(self._stream_checked(messages, stop, kwargs)) as chunks:
            async for chunk in chunks:
                await report_chunk(chunk, run_manager)
                yield chunk

    async def _stream_checked(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: Mapping[str, Any]
    ) -> AsyncGenerator[ChatGenerationChunk]:
        draft, ending, shown = self.draft(), list[ChatGenerationChunk](), list[str]()
        message_id, has_calls = cast("str | None", None), False
        stream = cast("Any", self.model._astream(messages, stop, None, **kwargs))
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                message_id = chunk.message.id or message_id
                has_calls = has_calls or bool(cast("AIMessageChunk", chunk.message).tool_call_chunks)
                ready, bare = await draft.feed(chunk.text), _without_text(chunk)
                if ready:
                    shown.append(ready)
                    yield _text_chunk(ready, message_id)
                # The end must come last, so it waits for the text that is still being checked.
                if ending or _is_end(chunk):
                    ending.append(bare)
                elif _has_more(bare):
                    yield bare
        async with aclosing(self._finish(draft, shown, has_calls=has_calls)) as parts:
            async for rest in parts:
                yield _text_chunk(rest, message_id)
        for chunk in ending:
            yield chunk

    async def _finish(self, draft: Draft, shown: list[str], *, has_calls: bool) -> AsyncGenerator[str]:
        """Yield the rest of a report, whose beginning was `shown`, and its score."""
        async with aclosing(end_draft(draft, has_calls=has_calls)) as parts:
            async for rest in parts:
                if rest:
                    shown.append(rest)
                    yield rest
        if score := await report_draft_claims(draft, "".join(shown), self.locale):
            yield score


@runtime_checkable
class PartedDraft(Protocol):
    """A draft whose end comes in parts, as it is still being written."""

    def end_parts(self, *, has_calls: bool = False) -> AsyncGenerator[str]:
        """Yield the rest of the report; `has_calls` is whether the answer has tool calls."""
        ...


async def end_draft(draft: Draft, *, has_calls: bool = False) -> AsyncGenerator[str]:
    """Yield the rest of a report."""
    if not isinstance(draft, PartedDraft):
        yield await draft.end()
        return
    async with aclosing(draft.end_parts(has_calls=has_calls)) as parts:
        async for one in parts:
            yield one


def _text_chunk(text: str, message_id: str | None) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(content=text, id=message_id))


def _without_text(chunk: ChatGenerationChunk) -> ChatGenerationChunk:
    message = chunk.message.model_copy(update={"content": ""})
    return ChatGenerationChunk(message=message, generation_info=chunk.generation_info)


def _is_end(chunk: ChatGenerationChunk) -> bool:
    return bool((chunk.generation_info or {}).get("finish_reason")) or _is_last(chunk)


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return getattr(chunk.message, "chunk_position", None) == "last"


def _has_more(chunk: ChatGenerationChunk) -> bool:
    """Return whether a chunk has anything beside its text."""
    message = cast("AIMessageChunk", chunk.message)
    return bool(
        message.additional_kwargs
        or message.tool_call_chunks
        or message.usage_metadata
        or message.response_metadata
        or chunk.generation_info
    )


async def report_draft_claims(draft: Draft, text: str, locale: str) -> str:
    """Send the event about a complete report; return the score to add to its `text`."""
    return await report_claims(await draft.judge_claims(), draft.marks, text, locale)

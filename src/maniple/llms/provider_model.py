"""Any chat model of LangChain, with streams, tools, errors and usage as the team reads them."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any, cast

import httpx2
import openai
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    SystemMessage,
    convert_to_messages,
    convert_to_openai_messages,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from maniple.config.model_providers import Provider
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.egress.environment_transport import mark_proxy, proxy_of
from maniple.errors import ModelError, causes_of
from maniple.llms.answering_model import AnsweringModel, Chunks, ModelRequest
from maniple.llms.capabilities import Capabilities
from maniple.llms.endpoint_errors import MALFORMED, ClientFailed, make_status_error
from maniple.llms.endpoints import EndpointName
from maniple.llms.paced_streams import PacedReader
from maniple.llms.providers import provider_of
from maniple.llms.refusals import adapt_request
from maniple.llms.streams import BLOCKS_KEY, chunk_bytes, join_chunks, kind_of
from maniple.text import fix_surrogates
from maniple.types import is_dict, is_list, is_mapping

_THOUGHTS = ("thinking", "redacted_thinking", "reasoning_content", "reasoning")
_END_REASONS = ("finish_reason", "stop_reason", "stopReason", "done_reason")
_CUT_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
_SAMPLING = ("temperature", "top_p")
# In the names of errors: those of HTTP libraries and of boto have no common classes.
_CONNECTION_WORDS = ("Connect", "Network", "Protocol", "Transport")
_NETWORK_ERRNOS = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
_READING_WORDS = ("Pars", "Decod", "ResponseValidation")


class ProviderModel(AnsweringModel):
    """A chat model of any provider, which `inner` talks to.

    Messages are LangChain's, tools stay in OpenAI's form until the call, so that a fallback of another
    provider gets both as it wants them.
    """

    inner: BaseChatModel = Field(exclude=True)
    provider: Provider = Field(exclude=True)
    api_key: str = Field(default="", exclude=True, repr=False)
    stream_rate: float = Field(default=0, exclude=True)
    """The chunks of an answer that are passed on in a second, after the first one; 0 is no limit."""

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return dict(self.inner._identifying_params)

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    @property
    def secret(self) -> str:
        """See `AnsweringModel`."""
        return self.api_key

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        chosen = {"tool_choice": tool_choice} if tool_choice else {}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **chosen, **kwargs)

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("Call the model with ainvoke or astream.")

    def request_body(self, request: ModelRequest, known: Capabilities) -> dict[str, Any]:
        """See `AnsweringModel`."""
        return self._adapt(request, convert_to_openai_messages(request.messages), known)

    def _adapt(self, request: ModelRequest, messages: Any, known: Capabilities) -> dict[str, Any]:
        body: dict[str, Any] = {"messages": messages, **request.fields}
        body |= {name: value for name in _SAMPLING if (value := getattr(self.inner, name, None)) is not None}
        return adapt_request(body | ({"stop": request.stop} if request.stop else {}), known)

    async def stream_answer(self, request: ModelRequest) -> AsyncGenerator[ChatGenerationChunk]:
        """See `AnsweringModel`. What the client yields meanwhile is joined."""
        answer = self._read_answer(request)
        async with aclosing(PacedReader(answer, self.stream_rate, chunk_bytes)) as reader:
            reader.is_limited = False
            while arrived := await reader.read():
                for chunk in join_chunks(arrived):
                    yield chunk
                    reader.is_limited = reader.is_limited or bool(kind_of(chunk))

    async def _read_answer(self, request: ModelRequest) -> AsyncGenerator[ChatGenerationChunk]:
        inner, messages, options = self._prepare(request)
        has_ended = False
        try:
            if not self._streams:
                result = await inner._agenerate(messages, request.stop, None, **options)
                yield normalize(result.generations[0], self.provider.origin, end_reason="stop")
                return
            stream = cast("Chunks", inner._astream(messages, request.stop, None, **options))
            async with aclosing(stream) as chunks:
                async for chunk in chunks:
                    ready = normalize(chunk, self.provider.origin)
                    has_ended = has_ended or bool((ready.generation_info or {}).get("finish_reason"))
                    yield ready
        except (openai.OpenAIError, ModelError):
            raise
        except Exception as error:
            raise await self._as_failure(error) from error
        if not has_ended and not self.provider.names_end:
            end = AIMessageChunk(content="", response_metadata={"finish_reason": "stop"})
            yield ChatGenerationChunk(message=end, generation_info={"finish_reason": "stop"})

    async def _as_failure(self, error: Exception) -> Exception:
        is_known = bool(self.provider.extra)
        failure = as_endpoint_failure(error, self.endpoint.url, is_known=is_known)
        # Of a class that is not in the table it is not known whether it reads the environment.
        if isinstance(failure, openai.APIConnectionError) and is_known and not proxy_of(error):
            proxies = await asyncio.to_thread(EnvironmentProxies.read)
            mark_proxy(failure.request, proxies.describe_for(self.endpoint.url))
        return failure

    async def generate_answer(self, request: ModelRequest) -> ChatResult:
        """See `AnsweringModel`. The answer is streamed, too, so that there is one form to read."""
        whole: BaseMessage | None = None
        async with aclosing(self.stream_answer(request)) as chunks:
            async for chunk in chunks:
                piece = chunk.message
                whole = whole + piece if isinstance(whole, AIMessageChunk) else piece  # pyright: ignore
        if not isinstance(whole, AIMessageChunk):
            raise ValueError("the answer was empty")  # noqa: TRY004 - as of a body without an answer
        if not whole.response_metadata.get("finish_reason"):
            raise httpx2.RemoteProtocolError("the stream ended before the answer did")
        return ChatResult(generations=[ChatGeneration(message=message_chunk_to_message(whole))])

    @cached_property
    def _streams(self) -> bool:
        kind = type(self.inner)
        return kind._astream is not BaseChatModel._astream or kind._stream is not BaseChatModel._stream

    def _prepare(self, request: ModelRequest) -> tuple[BaseChatModel, list[BaseMessage], dict[str, Any]]:
        """Return the model, messages and options of a call, without what the endpoint is known to refuse."""
        converted = convert_to_openai_messages(request.messages)
        body = self._adapt(request, converted, self.capabilities)
        inner, messages = self.inner, list(request.messages)
        if body["messages"] != converted:
            messages = convert_to_messages(body["messages"])
        refused = [name for name in _SAMPLING if getattr(inner, name, None) is not None and name not in body]
        if refused:
            inner = inner.model_copy(update=dict.fromkeys(refused))
        if (effort := body.pop("reasoning_effort", None)) is not None:
            body[self.provider.effort_option or "reasoning_effort"] = effort
        options = {**self.provider.call_options, **_call_options(inner, body)}
        restored = [_restore_blocks(one, self.provider.origin) for one in messages]
        if self.provider.marks_system:
            restored = [_mark_for_cache(one) for one in restored]
        return inner, restored, options


def as_answering(model: BaseChatModel, setting: str, stream_rate: float = 0) -> AnsweringModel:
    """Return a program's own chat model as the team needs it; `setting` names it in errors."""
    if isinstance(model, AnsweringModel):
        return model
    kind = type(model)
    provider = provider_of(kind)
    names = (getattr(model, name, None) for name in ("model", "model_name", "model_id"))
    name = next((one for one in names if isinstance(one, str) and one), kind.__name__)
    return ProviderModel(
        inner=model,
        provider=provider,
        endpoint=EndpointName(name, kind.__name__, setting, env_prefix=""),
        capabilities=Capabilities(fixed=provider.known_features),
        profile=model.profile,
        stream_rate=stream_rate,
    )


def _call_options(inner: BaseChatModel, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools of a request and other options as a model takes them."""
    options = {
        name: value
        for name, value in body.items()
        if name not in ("messages", "tools", "tool_choice", "stop", "parallel_tool_calls", "extra_body")
        and name not in _SAMPLING
    }
    if not body.get("tools"):
        return options
    choice = body.get("tool_choice")
    if is_mapping(choice):
        choice = choice.get("function", {}).get("name")
    try:
        bound = inner.bind_tools(body["tools"], **({"tool_choice": choice} if choice else {}))
    except ValueError:  # this model cannot be forced to call a tool
        bound = inner.bind_tools(body["tools"])
    return {**options, **getattr(bound, "kwargs", {})}


def _mark_for_cache(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, SystemMessage) or not isinstance(message.content, str) or not message.content:
        return message
    part = {"type": "text", "text": message.content, "cache_control": {"type": "ephemeral"}}
    return message.model_copy(update={"content": [part]})


def _restore_blocks(message: BaseMessage, origin: str) -> BaseMessage:
    """Return a message with the blocks that its provider wants back; another provider's are left out."""
    kept = message.additional_kwargs.get(BLOCKS_KEY)
    is_own = message.response_metadata.get("model_provider") == origin
    if not is_own or not is_list(kept) or not isinstance(message.content, str):
        return message
    blocks = [{k: v for k, v in one.items() if k != "index"} for one in kept if is_dict(one)]
    text = [{"type": "text", "text": message.content}] if message.content else []
    return message.model_copy(update={"content": [*blocks, *text]})


def normalize(answer: ChatGeneration, origin: str, *, end_reason: str = "") -> ChatGenerationChunk:
    """Return an answer, or a piece of one, with its text as a string, its thoughts and its end as the team's.

    `end_reason` is that of a whole answer which does not say why it ended.
    """
    message = answer.message
    fields = _fields(message, {**(answer.generation_info or {}), **message.response_metadata}, origin)
    if end_reason:
        fields["response_metadata"].setdefault("finish_reason", end_reason)
    kind = "tool_call_chunks" if isinstance(message, AIMessageChunk) else "tool_calls"
    calls: dict[str, Any] = {kind: list(getattr(message, kind, []))}
    piece = AIMessageChunk(**fields, **calls)
    reason = fields["response_metadata"].get("finish_reason")
    return ChatGenerationChunk(message=piece, generation_info={"finish_reason": reason} if reason else None)


def _fields(message: BaseMessage, metadata: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Return the fields of an answer's message in the team's form."""
    extra = dict(message.additional_kwargs)
    thoughts, blocks = "", list[dict[str, Any]]()
    for block in message.content if isinstance(message.content, list) else ():
        if is_dict(block) and block.get("type") in _THOUGHTS:
            thoughts += _thought_of(block)
            blocks.append(block)
    if thoughts:
        extra["reasoning_content"] = thoughts
    if blocks:
        extra[BLOCKS_KEY] = blocks
    reason = next((str(metadata[name]) for name in _END_REASONS if metadata.get(name)), "")
    known: dict[str, Any] = {"model_name": name} if (name := metadata.get("model_name")) else {}
    if reason:
        known["finish_reason"] = "length" if reason.casefold() in _CUT_REASONS else "stop"
    if blocks:
        known["model_provider"] = origin
    return {
        "content": fix_surrogates(_text_of(message)),
        "additional_kwargs": extra,
        "response_metadata": known,
        "usage_metadata": getattr(message, "usage_metadata", None),
        "id": message.id,
    }


def _text_of(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = (
        one if isinstance(one, str) else one.get("text") or "" for one in message.content if _is_text(one)
    )
    return "".join(str(part) for part in parts)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (is_dict(part) and part.get("type") == "text")


def _thought_of(block: Mapping[str, Any]) -> str:
    inner = block.get("reasoning_content")
    if is_mapping(inner):
        return str(inner.get("text") or "")
    return str(block.get("thinking") or block.get("reasoning") or "")


def as_endpoint_failure(error: Exception, url: str, *, is_known: bool = True) -> Exception:
    """Return an error of any provider's client as one of `ENDPOINT_FAILURES`, by its form.

    The status is that of `status_code`, `code`, `response.status_code` or boto's response. Without one, it is
    a failed connection, an answer that the client cannot read, or else a failure of the client. What a class
    that `PROVIDERS` does not know cannot read is a failure of the client, too.
    """
    for one in causes_of(error):
        if (status := _status_of(one)) is not None:
            return make_status_error(status, _body_of(one), _headers_of(one), url)
    request, text = httpx2.Request("POST", url), str(error) or type(error).__name__
    if _is_named(error, ("Timeout",)):
        return openai.APITimeoutError(request=request)
    if is_known and _is_malformed_answer(error):
        return ValueError(text)
    if any(_is_of_connection(one) for one in causes_of(error)):
        return openai.APIConnectionError(message=text, request=request)
    return ClientFailed(f"{type(error).__name__}: {error}" if str(error) else text)


def _is_of_connection(error: BaseException) -> bool:
    if isinstance(error, OSError):
        is_of_network = isinstance(error, ConnectionError | socket.gaierror | ssl.SSLError)
        return is_of_network or error.errno in _NETWORK_ERRNOS or _is_named(error, _CONNECTION_WORDS)
    return _is_named(error, _CONNECTION_WORDS)


def _is_malformed_answer(error: Exception) -> bool:
    """Return whether the outermost cause that tells is one of reading an answer, not of the connection."""
    for one in causes_of(error):
        if isinstance(one, OSError) or _is_named(one, _CONNECTION_WORDS):
            return False
        if isinstance(one, MALFORMED) or _is_named(one, _READING_WORDS):
            return True
    return False


def _is_named(error: BaseException, words: Sequence[str]) -> bool:
    return any(word in kind.__name__ for kind in type(error).__mro__ for word in words)


def _status_of(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    values = [getattr(error, "status_code", None), getattr(error, "code", None)]
    values.append(getattr(response, "status_code", None))
    if is_mapping(response):
        metadata = response.get("ResponseMetadata")
        values.append(metadata.get("HTTPStatusCode") if is_mapping(metadata) else None)
    return next((one for one in values if type(one) is int and 400 <= one < 600), None)


def _headers_of(error: BaseException) -> Mapping[str, str]:
    headers = getattr(getattr(error, "response", None), "headers", None)
    wait = headers.get("retry-after") if headers is not None and hasattr(headers, "get") else None
    return {"retry-after": str(wait)} if wait else {}


def _body_of(error: BaseException) -> dict[str, Any]:
    body = getattr(error, "body", None)
    if is_dict(body):
        inner = body.get("error")
        return inner if is_dict(inner) else body
    return {"message": str(getattr(error, "message", "") or error)}

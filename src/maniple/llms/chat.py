"""Chat models on OpenAI-compatible endpoints, with reasoning, fallbacks and actionable errors."""

import json
from typing import Any, Self, cast

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import SecretStr, model_validator

from maniple.llms.answering_model import AnsweringModel, Chunks, ModelRequest
from maniple.llms.capabilities import Capabilities
from maniple.llms.endpoints import OPENAI_ORIGIN
from maniple.llms.raw_streams import RawCompletions
from maniple.llms.refusals import adapt_request
from maniple.llms.request_messages import UNKNOWN_REASONING
from maniple.llms.streams import (
    add_call_extras,
    copy_cached_tokens,
    copy_call_extras,
    copy_reasoning,
)
from maniple.text import fix_surrogates

_MAX_ENCODINGS = 3


class EndpointModel(AnsweringModel, BaseChatOpenAI):
    """LangChain's OpenAI chat model as an `AnsweringModel`."""

    @model_validator(mode="after")
    def _read_streams_raw(self) -> Self:
        if not isinstance(self.async_client, RawCompletions):
            self.async_client = RawCompletions(self.async_client)
        return self

    def stream_answer(self, request: ModelRequest) -> Chunks:
        """See `AnsweringModel`."""
        # Bypasses `ChatOpenAI._astream`, which only chooses an API and leaves this generator unclosed.
        answer = BaseChatOpenAI._astream(self, request.messages, request.stop, None, **request.fields)
        return cast("Chunks", answer)

    async def generate_answer(self, request: ModelRequest) -> ChatResult:
        """See `AnsweringModel`."""
        return await BaseChatOpenAI._agenerate(self, request.messages, request.stop, None, **request.fields)

    @property
    def may_omit_opening_mark(self) -> bool:
        """See `AnsweringModel`."""
        return self._is_another_host()

    def own_fields(self, kwargs: dict[str, Any], *, streaming: bool) -> dict[str, Any]:
        """Return the fields that this class adds to a request, as far as the endpoint accepts them."""
        fields = super().own_fields(kwargs, streaming=streaming)
        if streaming:
            fields["stream_usage"] = self.capabilities.has("stream_usage")
        if (
            kwargs.get("tools")
            and "parallel_tool_calls" not in kwargs
            and self.capabilities.one_tool_at_a_time
        ):
            fields["parallel_tool_calls"] = False
        return fields

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return adapt_request(self._full_payload(input_, stop, kwargs), self.capabilities)

    def _full_payload(
        self, input_: LanguageModelInput, stop: list[str] | None, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the body of a request with all that an endpoint may accept."""
        payload = fix_surrogates(super()._get_request_payload(input_, stop=stop, **kwargs))
        sent = payload.get("messages", ())
        for message, source in zip(sent, self._convert_input(input_).to_messages(), strict=True):
            message.pop("name", None)  # the names of agents; several endpoints reject the field
            _add_reasoning_field(message, source)
            add_call_extras(message, source)
        if self._is_another_host() and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def _is_another_host(self) -> bool:
        # Only OpenAI and Azure have renamed the field to `max_completion_tokens`.
        return not self.endpoint.url.startswith(OPENAI_ORIGIN) and self._llm_type != "azure-openai-chat"

    def request_body(self, request: ModelRequest, known: Capabilities) -> dict[str, Any]:
        """See `AnsweringModel`."""
        body = self._full_payload(request.messages, request.stop, request.fields)
        return adapt_request({**body, "stream": request.is_streamed}, known)

    @property
    def secret(self) -> str:
        """See `AnsweringModel`."""
        return self.openai_api_key.get_secret_value() if isinstance(self.openai_api_key, SecretStr) else ""

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict, default_chunk_class: type, base_generation_info: dict | None
    ) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        choices = chunk.get("choices") or ()
        if converted is not None and isinstance(converted.message.content, str):
            # A lone surrogate can neither be stored in a checkpoint nor sent to a client.
            converted.message.content = fix_surrogates(converted.message.content)
        if converted is not None:
            copy_cached_tokens(converted.message, chunk.get("usage") or {})
        if converted is not None and choices:
            copy_reasoning(converted.message, choices[0].get("delta") or {})
            copy_call_extras(converted.message, choices[0].get("delta") or {})
        return converted

    def _create_chat_result(
        self, response: dict | openai.BaseModel, generation_info: dict | None = None
    ) -> ChatResult:
        body = response if isinstance(response, dict) else response.model_dump()
        if _decode_arguments(body):
            response = body
        result = super()._create_chat_result(response, generation_info)
        for generation, choice in zip(result.generations, body.get("choices") or (), strict=False):
            copy_reasoning(generation.message, choice.get("message") or {})
            copy_call_extras(generation.message, choice.get("message") or {})
            copy_cached_tokens(generation.message, body.get("usage") or {})
        return result


class OpenAIEndpointModel(EndpointModel, ChatOpenAI):
    """Any OpenAI-compatible endpoint."""


class AzureEndpointModel(EndpointModel, AzureChatOpenAI):
    """An Azure OpenAI deployment."""


def _decode_arguments(body: dict[str, Any]) -> bool:
    """Decode the arguments of calls that were encoded as JSON more than once; return whether any were."""
    messages = [choice.get("message") or {} for choice in body.get("choices") or ()]
    found = False
    for function in (call.get("function") or {} for one in messages for call in one.get("tool_calls") or ()):
        for _ in range(_MAX_ENCODINGS):
            encoded = function.get("arguments")
            if not isinstance(encoded, str) or not encoded.lstrip().startswith('"'):
                break
            try:
                decoded = json.loads(encoded)
            except ValueError:
                break
            function["arguments"], found = decoded, True
    return found


def _add_reasoning_field(message: dict[str, Any], source: BaseMessage) -> None:
    """Add the reasoning before an answer, for endpoints that want it back; `adapt_request` removes it."""
    if message.get("role") != "assistant":
        return
    reasoning = source.additional_kwargs.get("reasoning_content")
    if reasoning or message.get("tool_calls"):
        message["reasoning_content"] = fix_surrogates(reasoning or UNKNOWN_REASONING)

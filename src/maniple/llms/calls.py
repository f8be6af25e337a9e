"""Ask a model once: retried when its stream breaks off, and answered as one message."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from maniple.errors import ModelError

CUT_STREAM_ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 8.0


def broke_off(error: BaseException) -> bool:
    """Say whether asking again is right here.

    The SDK has already retried what failed before the first word (429, 5xx, timeouts, honouring
    Retry-After); what remains is an answer that broke off or was garbled half-way.
    """
    return isinstance(error, ModelError) and error.code in ("model_stream_cut", "model_bad_response")


async def ask(
    model: Runnable[Any, Any], messages: Sequence[BaseMessage], **options: Any
) -> AIMessage:
    """Return the model's answer to `messages`; raises `ModelError` when it gives none."""
    retrying = AsyncRetrying(
        retry=retry_if_exception(broke_off),
        stop=stop_after_attempt(CUT_STREAM_ATTEMPTS),
        wait=wait_exponential_jitter(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
        reraise=True,
    )
    return await retrying(model.ainvoke, list(messages), **options)

"""Ask a model once: retried when its stream breaks off, and answered as one message."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from maniple.errors import ModelError
from maniple.llms.capabilities import Capabilities
from maniple.llms.images import has_images, without_images

CUT_STREAM_ATTEMPTS = 3
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 8.0


def broke_off(error: BaseException) -> bool:
    """Say whether asking again is right here.

    The SDK has already retried what failed before the first word (429, 5xx, timeouts, honouring
    Retry-After); what remains is an answer that broke off or was garbled half-way.
    """
    return isinstance(error, ModelError) and (error.broke_off or error.code == "model_bad_response")


def capabilities_of(model: Runnable[Any, Any]) -> Capabilities:
    """Return what is known of `model`, bound to tools or not; of one that is not ours, the usual case."""
    known = getattr(getattr(model, "bound", model), "capabilities", None)
    return known if isinstance(known, Capabilities) else Capabilities()


async def ask(model: Runnable[Any, Any], messages: Sequence[BaseMessage], **options: Any) -> AIMessage:
    """Return the model's answer to `messages`; raises `ModelError` when it gives none.

    To a model that cannot see, pictures are named in their place.
    """
    capabilities = capabilities_of(model)
    if not capabilities.has("vision"):
        messages = without_images(messages)
    try:
        return await _asked(model, messages, options)
    except ModelError as error:
        # Rejected and noted just now: ask again in words alone.
        blind = error.code == "model_bad_request" and not capabilities.has("vision")
        if not blind or not any(has_images(message) for message in messages):
            raise
        return await _asked(model, without_images(messages), options)


async def _asked(
    model: Runnable[Any, Any], messages: Sequence[BaseMessage], options: dict[str, Any]
) -> AIMessage:
    retrying = AsyncRetrying(
        retry=retry_if_exception(broke_off),
        stop=stop_after_attempt(CUT_STREAM_ATTEMPTS),
        wait=wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS) + wait_random(0, 1),
        reraise=True,
    )
    return await retrying(model.ainvoke, list(messages), **options)

"""Where a chat model answers."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server on this machine.

    `base_url` ends in `/v1`; `server` is the program's name for the user, such as `Ollama`;
    `context_tokens` is the window of one request, or None where the server does not say.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    server: str
    context_tokens: int | None = None

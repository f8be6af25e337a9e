"""The providers of chat models: the values of `models.*.provider`, and what is particular to each.

`PROVIDERS` is the table: a provider is added there, and the package that it needs as an extra of
`pyproject.toml`. Only names and addresses are here, because packages of providers take long to import.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Options of OpenAI's API that other clients do not take; objects are asked for by a forced tool call.
_UNSUPPORTED: Mapping[str, bool] = dict.fromkeys(("json_schema", "json_object", "grammar"), False)


@dataclass(frozen=True, slots=True)
class Provider:
    """An API of chat models, and the class that speaks it."""

    path: str = ""
    """`module:Class` of the chat models; "" for OpenAI's API, which the team's own client speaks."""
    url: str = ""
    """Where requests go unless `base_url` is set; "" for a class that knows it alone."""
    extra: str = ""
    """What installs the package."""
    label: str = ""
    """What LangChain calls it in the metadata of its answers."""
    call_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further options of each call."""
    marks_system: bool = False
    """Whether the prompt's stable beginning is marked for the provider's cache."""
    names_end: bool = False
    """Whether each complete answer says why it ended, so that a stream without it was cut."""
    effort_option: str = ""
    """The option of a call that sets the effort of reasoning; "" for a class without one."""
    features: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What its endpoints have or have not, where the API does not say it."""

    @property
    def speaks_openai(self) -> bool:
        """Whether the team's own client speaks its API."""
        return not self.path

    @property
    def known_features(self) -> Mapping[str, bool]:
        """What is known of its endpoints before the first call."""
        if self.speaks_openai:
            return self.features
        effort = {} if self.effort_option else {"reasoning_effort": False}
        return {**_UNSUPPORTED, **effort, **self.features}

    @property
    def origin(self) -> str:
        """The value of `model_provider` in the metadata of its answers."""
        return self.label or self.path


_CACHED = {"type": "ephemeral"}
PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(url="https://api.openai.com/v1"),
    "azure": Provider(),
    "deepseek": Provider(url="https://api.deepseek.com/v1"),
    "mistral": Provider(url="https://api.mistral.ai/v1", features={"long_call_ids": False}),
    "anthropic": Provider(
        "langchain_anthropic:ChatAnthropic",
        "https://api.anthropic.com",
        "anthropic",
        "anthropic",
        call_options={"cache_control": _CACHED},
        marks_system=True,
        names_end=True,
        effort_option="reasoning_effort",
    ),
    "gemini": Provider(
        "langchain_google_genai:ChatGoogleGenerativeAI",
        "https://generativelanguage.googleapis.com",
        "gemini",
        "google_genai",
        names_end=True,
        effort_option="reasoning_effort",
    ),
    "bedrock": Provider(
        "langchain_aws:ChatBedrockConverse",
        extra="bedrock",
        label="bedrock_converse",
        names_end=True,  # its class takes an effort only when it is made: `options`
    ),
    "ollama": Provider(
        "langchain_ollama:ChatOllama",
        "http://127.0.0.1:11434",
        "ollama",
        "ollama",
        names_end=True,
        effort_option="reasoning",
    ),
}


def provider_named(name: str) -> Provider:
    """Return the provider of this name, or that of a class `module:Class`."""
    return PROVIDERS.get(name) or Provider(name)


def check_provider(name: str) -> str:
    """Return the value of a setting; raises `ValueError` unless it is a provider's name or a class."""
    module, _, kind = name.partition(":")
    if name in PROVIDERS or (kind.isidentifier() and all(map(str.isidentifier, module.split(".")))):
        return name
    raise ValueError(f"write one of {', '.join(PROVIDERS)}, or module:Class of a chat model of LangChain")

"""What can be set of logs and traces."""

from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from maniple.config.section import Section
from maniple.config.values import ApiKey, EndpointUrl


def _headers_of_a_line(value: Any) -> Any:
    """Read `name=value,name=value`, as OTEL_EXPORTER_OTLP_HEADERS has it."""
    if not isinstance(value, str):
        return value
    pairs = (pair.partition("=") for pair in value.split(",") if pair.strip())
    return {name.strip(): unquote(text.strip()) for name, _, text in pairs}


Headers = Annotated[dict[str, SecretStr], BeforeValidator(_headers_of_a_line)]
UpperLevel = Annotated[
    Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"],
    BeforeValidator(lambda level: level.upper() if isinstance(level, str) else level),
]


class LoggingSettings(Section):
    """The log on stderr; at a terminal `maniple chat` keeps it in `chat.log` in the data directory."""

    level: UpperLevel = "INFO"
    format: Literal["auto", "console", "json"] = "auto"
    """`auto` is `console` on a terminal and for `maniple chat`, and `json` elsewhere."""


class LangSmithSettings(Section):
    """Traces to LangSmith; its own variables are read as well (LANGSMITH_TRACING and so on)."""

    enabled: bool = False
    api_key: ApiKey = None
    endpoint: EndpointUrl = None
    project: str = Field(default="maniple", min_length=1)

    @model_validator(mode="after")
    def _has_a_key(self) -> "LangSmithSettings":
        if self.enabled and self.api_key is None:
            raise ValueError("LangSmith needs a key: set LANGSMITH_API_KEY in .env, or enabled: false")
        return self


class TelemetrySettings(Section):
    """Traces to a collector of OpenTelemetry."""

    otlp_endpoint: EndpointUrl = None
    """The collector's address (OTLP over HTTP), such as `http://127.0.0.1:4318`; none: no such traces."""
    otlp_headers: Headers = Field(default_factory=dict)
    service_name: str = Field(default="maniple", min_length=1)
    contents: bool = False
    """Whether OpenTelemetry's spans hold what models and tools were told and answered; LangSmith's do."""
    langsmith: LangSmithSettings = LangSmithSettings()

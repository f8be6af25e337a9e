from pathlib import Path

import pytest

from maniple.config import load_settings
from maniple.config.secrets import secrets_of
from maniple.config.sources import LIBRARY_VARIABLES
from maniple.errors import ConfigError


def test_what_libraries_would_not_find_in_an_env_file_is_read_for_them(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "LANGSMITH_TRACING=true\nLANGSMITH_API_KEY=ls-canary\nLANGSMITH_ENDPOINT=http://127.0.0.1:1\n"
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\nOTEL_EXPORTER_OTLP_HEADERS=a=otlp-canary,b=c\n"
        "OTEL_TRACES_SAMPLER=always_on\nLANGSMITH_HIDE_INPUTS=true\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
    )
    settings = load_settings(tmp_path / "none", env_file=tmp_path / ".env", environment={})
    telemetry = settings.telemetry
    assert telemetry.langsmith.enabled
    assert telemetry.langsmith.endpoint == "http://127.0.0.1:1"
    assert telemetry.otlp_endpoint == "http://127.0.0.1:4318"
    assert set(telemetry.otlp_headers) == {"a", "b"}
    assert {"ls-canary", "otlp-canary"} <= set(secrets_of(settings))
    assert settings.notices == ()


@pytest.mark.parametrize("name", LIBRARY_VARIABLES)
def test_each_variable_of_a_library_has_a_setting(name: str, tmp_path: Path) -> None:
    values = {"TRACING": "false", "TRACING_V2": "false", "HEADERS": "a=b"}
    value = next((text for end, text in values.items() if name.endswith(end)), "http://127.0.0.1:1")
    load_settings(tmp_path / "none", env_file=tmp_path / "none", environment={name: value})


def test_logs_are_set_by_name(tmp_path: Path) -> None:
    environment = {"MANIPLE_LOGGING__LEVEL": "debug", "MANIPLE_LOGGING__FORMAT": "json"}
    settings = load_settings(tmp_path / "none", env_file=tmp_path / "none", environment=environment)
    assert (settings.logging.level, settings.logging.format) == ("DEBUG", "json")


def test_tracing_without_a_key_names_the_variable(tmp_path: Path) -> None:
    environment = {"LANGSMITH_TRACING": "true"}
    with pytest.raises(ConfigError, match="LANGSMITH_API_KEY"):
        load_settings(tmp_path / "none", env_file=tmp_path / "none", environment=environment)
